// The conformance suite on the simulator.
#include <gtest/gtest.h>

#include "bench/backend/sim/backend.hpp"
#include "tests/conformance/backend_under_test.hpp"

namespace fsdp::test {
namespace {

constexpr int most_ranks = 5;

/// Made-up costs for every collective the suite may ask for.
ClusterSpec cluster() {
  ClusterSpec spec;
  spec.name = "made up";
  spec.origin = "made up for tests";
  spec.ranks = most_ranks;
  const CostCurve curve{{{Bytes{1024}, Nanoseconds{2'000}}, {Bytes{1 << 20}, Nanoseconds{90'000}}}};
  for (int ranks = 1; ranks <= most_ranks; ++ranks) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      for (const CollectiveKind kind :
           {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
        spec.collectives.push_back({.kind = kind, .dtype = dtype, .ranks = ranks, .curve = curve});
      }
    }
  }
  for (const CopyKind kind :
       {CopyKind::cast, CopyKind::copy_in, CopyKind::copy_out, CopyKind::chunk_cat}) {
    spec.copies.push_back({.kind = kind, .curve = curve});
  }
  return spec;
}

class SimUnderTest final : public BackendUnderTest {
 public:
  ControlPlane& control() override { return control_; }
  std::unique_ptr<Executor> executor(const std::optional<FaultInjection>&) override {
    return sim::make_executor(cluster());
  }
  std::vector<int> worlds() override { return {1, 2, 3, 4}; }

 private:
  SerialControlPlane control_;
};

}  // namespace

BackendUnderTest& backend_under_test() {
  static SimUnderTest sim;
  return sim;
}

}  // namespace fsdp::test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
