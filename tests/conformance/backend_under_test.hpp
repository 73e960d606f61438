// What the one conformance suite is linked to: each backend's main says how to get at it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bench/control_plane.hpp"
#include "bench/executor.hpp"

namespace fsdp::test {

class BackendUnderTest {
 public:
  virtual ~BackendUnderTest() = default;
  virtual ControlPlane& control() = 0;
  virtual std::unique_ptr<Executor> executor(const std::optional<FaultInjection>& fault) = 0;
  /// Sizes of shard groups to test: what this job has, or any that can be simulated.
  virtual std::vector<int> worlds() = 0;
};

/// Valid while main() runs.
BackendUnderTest& backend_under_test();

}  // namespace fsdp::test
