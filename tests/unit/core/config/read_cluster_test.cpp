#include <gtest/gtest.h>

#include <string>

#include "bad_config.hpp"

namespace fsdp {
namespace {

const std::string source_dir = FSDP_SOURCE_DIR;

TEST(ReadCluster, ShippedExampleSaysThatItIsNotMeasured) {
  const ClusterSpec cluster = load_cluster(source_dir + "/configs/clusters/illustrative-8.yaml");
  EXPECT_EQ(cluster.name, "illustrative-8");
  EXPECT_EQ(cluster.origin, "illustrative, not measured");
  EXPECT_EQ(cluster.ranks, 8);
  EXPECT_EQ(cluster.collectives.size(), 5U);
  EXPECT_EQ(cluster.collectives[0].ranks, 8) << "a curve is of all ranks unless it says otherwise";
  EXPECT_EQ(cluster.collectives[0].curve.at(Bytes{1 << 20}), Nanoseconds{27'000});
  EXPECT_EQ(cluster.copies.size(), 4U);
  EXPECT_EQ(cluster.gemm_rate, FlopsPerSecond{600e12});
  EXPECT_EQ(cluster.gemm_latency, Nanoseconds{4'000});
  EXPECT_EQ(cluster.issue_cost, Nanoseconds{5'000});
}

ClusterSpec full_cluster() {
  return {.name = "two nodes: a",
          .origin = "calibrated on this machine",
          .ranks = 4,
          .collectives = {{.kind = CollectiveKind::all_gather,
                           .dtype = DType::bf16,
                           .ranks = 4,
                           .curve = {{{Bytes{1024}, Nanoseconds{1501}},
                                      {Bytes{1025}, Nanoseconds{1400}}}}},
                          {.kind = CollectiveKind::all_reduce,
                           .dtype = DType::f16,
                           .ranks = 2,
                           .curve = {{{Bytes{0}, Nanoseconds{0}}}}}},
          .copies = {{.kind = CopyKind::chunk_cat, .curve = {{{Bytes{3}, Nanoseconds{5}}}}}},
          .gemms = {{.gemm = {.batch = 2, .m = 3, .n = 4, .k = 5},
                     .dtype = DType::f32,
                     .time = Nanoseconds{123456789}}},
          .gemm_rate = {123456789.123},
          .gemm_latency = {7},
          .issue_cost = {0}};
}

TEST(PrintCluster, ReadsBackToTheSameValue) {
  const ClusterSpec cluster = full_cluster();
  std::string text = tiny_model + "cluster:\n";
  std::string body = print_cluster(cluster);
  for (std::size_t end = 0; (end = body.find('\n')) != std::string::npos; body.erase(0, end + 1)) {
    text += "  " + body.substr(0, end + 1);
  }
  const ClusterSpec read = load_run_config_text(text, "run.yaml").cluster.value();
  EXPECT_EQ(read.name, cluster.name);
  EXPECT_EQ(read.origin, cluster.origin);
  EXPECT_EQ(read.ranks, 4);
  ASSERT_EQ(read.collectives.size(), 2U);
  EXPECT_EQ(read.collectives[0].curve.points[0].time, Nanoseconds{1501});
  EXPECT_EQ(read.collectives[0].curve.points[1].bytes, Bytes{1025});
  EXPECT_EQ(read.collectives[1].kind, CollectiveKind::all_reduce);
  EXPECT_EQ(read.collectives[1].dtype, DType::f16);
  EXPECT_EQ(read.collectives[1].ranks, 2);
  ASSERT_EQ(read.copies.size(), 1U);
  EXPECT_EQ(read.copies[0].kind, CopyKind::chunk_cat);
  ASSERT_EQ(read.gemms.size(), 1U);
  EXPECT_EQ(read.gemms[0].gemm, cluster.gemms[0].gemm);
  EXPECT_EQ(read.gemms[0].time, Nanoseconds{123456789});
  EXPECT_EQ(read.gemm_rate, cluster.gemm_rate);
  EXPECT_EQ(print_cluster(read), print_cluster(cluster));
}

TEST(PrintCluster, ARankAloneNeedsNoCollectives) {
  ClusterSpec cluster = full_cluster();
  cluster.ranks = 1;
  cluster.collectives.clear();
  cluster.copies.clear();
  cluster.gemms.clear();
  EXPECT_EQ(print_cluster(cluster).find("collectives"), std::string::npos);
  const RunConfig config = load_run_config_text(
      tiny_model + "cluster: {name: one, origin: here, ranks: 1, gemm_rate: 1 TFLOP/s}\n",
      "run.yaml");
  EXPECT_TRUE(config.cluster->collectives.empty());
}

BadConfig bad(const std::string& body, int column, const std::string& key,
              const std::string& reason, const std::string& suggestion = "") {
  return {"cluster: {name: c, origin: o, ranks: 2, " + body + "}\n",
          1,
          column,
          key,
          reason,
          suggestion};
}

TEST(ReadCluster, Refusals) {
  const std::string rate = "gemm_rate: 1 TFLOP/s, ";
  expect_all_refused({
      bad(rate, 10, "cluster.collectives", "is missing", "add 'collectives"),
      bad("gemm_rate: 1 TFLOP, collectives: [{kind: all_gather, dtype: f32, points: [[1 B, 1 "
          "ns]]}]",
          52, "cluster.gemm_rate", "unknown unit 'TFLOP'"),
      bad(rate + "collectives: [{kind: gather}]", 84, "cluster.collectives[0].kind",
          "'gather' is not one of all_gather, reduce_scatter, all_reduce"),
      bad(rate + "collectives: [{kind: all_gather, dtype: f32, points: [[1 B]]}]", 117,
          "cluster.collectives[0].points[0]", "must be a pair", "[1 MiB, 20 us]"),
      bad(rate +
              "collectives: [{kind: all_gather, dtype: f32, points: [[2 B, 1 ns], [2 B, 2 ns]]}]",
          130, "cluster.collectives[0].points[1]", "sizes must ascend"),
      bad(rate + "collectives: [{kind: all_gather, dtype: f32, points: [[2, 1 ns]]}]", 118,
          "cluster.collectives[0].points[0][0]", "needs a unit"),
      bad(rate + "collectivs: []", 63, "cluster.collectivs", "unknown key",
          "did you mean 'collectives'?"),
  });
}

TEST(ReadCluster, ACurveIsStatedOnce) {
  const std::string curve = "{kind: all_gather, dtype: f32, points: [[1 B, 1 ns]]}";
  EXPECT_THROW(load_run_config_text(tiny_model +
                                        "cluster: {name: c, origin: o, ranks: 2, "
                                        "gemm_rate: 1 TFLOP/s, collectives: [" +
                                        curve + ", " + curve + "]}\n",
                                    "run.yaml"),
               ConfigError);
}

}  // namespace
}  // namespace fsdp
