#include "tuner/app/runner.hpp"

#include <gtest/gtest.h>

#include "tests/support/clusters.hpp"

namespace fsdp {
namespace {

std::string mesh_error(const DeviceMesh& mesh, int ranks) {
  RunConfig config;
  config.file = "run.yaml";
  config.mesh = mesh;
  try {
    resolve_mesh(config, ranks);
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(ResolveMesh, AllRanksInOneShardGroupByDefault) {
  const DeviceMesh mesh = resolve_mesh(RunConfig{}, 6);
  EXPECT_EQ(mesh.shard, 6);
  EXPECT_EQ(mesh.replicate, 1);
}

TEST(ResolveMesh, TheRunFilesMeshMustHoldTheRanks) {
  EXPECT_EQ(mesh_error({.replicate = 2, .shard = 2}, 4), "");
  EXPECT_NE(mesh_error({.replicate = 1, .shard = 3}, 4)
                .find("run.yaml: mesh.shard: 3 does not divide 4 ranks"),
            std::string::npos);
  EXPECT_NE(mesh_error({.replicate = 1, .shard = 8}, 4).find("8 does not divide 4 ranks"),
            std::string::npos);
  EXPECT_NE(mesh_error({.replicate = 1, .shard = 2}, 4).find("set replicate: 2"),
            std::string::npos);
}

TEST(PlannedMesh, ComesFromTheRunFileOrTheCluster) {
  RunConfig config;
  EXPECT_THROW(planned_mesh(config), ConfigError);
  config.cluster = test::cluster(8);
  EXPECT_EQ(planned_mesh(config).shard, 8);
  config.mesh = {.replicate = 1, .shard = 4};
  EXPECT_EQ(planned_mesh(config).shard, 4);
}

TEST(ResolveBackend, TheSimulatorNeedsACluster) {
  RunConfig config;
  config.measure.backend = BackendChoice::sim;
  EXPECT_THROW(resolve_backend(config), ConfigError);
  config.cluster = test::cluster(8);
  EXPECT_EQ(resolve_backend(config), BackendChoice::sim);
}

TEST(ResolveBackend, AutomaticMeasuresWhereThatWasBuilt) {
  RunConfig config;
  config.cluster = test::cluster(8);
  EXPECT_EQ(resolve_backend(config),
            measuring() == Measuring::built ? BackendChoice::mpi : BackendChoice::sim);
}

}  // namespace
}  // namespace fsdp
