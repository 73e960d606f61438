// What ranks agree on beside the data they move: arrivals, decisions, exit codes. Kept apart from
// the data plane; nothing in core/ or tuner/ knows MPI.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/units/error.hpp"

namespace fsdp {

/// Every call is collective over all ranks and in the same order on each. A rank that does not
/// arrive within the time-out makes the others throw TimeoutError that names `stage` and the
/// missing ranks.
class ControlPlane {
 public:
  virtual ~ControlPlane() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier(const std::string& stage) = 0;
  /// Rank 0's text on every rank.
  virtual std::string broadcast(const std::string& text, const std::string& stage) = 0;
  /// Every rank's text, by rank, on every rank.
  virtual std::vector<std::string> all_gather(const std::string& text,
                                              const std::string& stage) = 0;
  /// Element-wise maximum over ranks, in place, on every rank.
  virtual void max(std::span<double> values, const std::string& stage) = 0;
  /// Element-wise minimum over ranks, in place, on every rank.
  virtual void min(std::span<double> values, const std::string& stage) = 0;
};

/// The control plane of a lone process.
class SerialControlPlane final : public ControlPlane {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void barrier(const std::string&) override {}
  std::string broadcast(const std::string& text, const std::string&) override { return text; }
  std::vector<std::string> all_gather(const std::string& text, const std::string&) override {
    return {text};
  }
  void max(std::span<double>, const std::string&) override {}
  void min(std::span<double>, const std::string&) override {}
};

}  // namespace fsdp
