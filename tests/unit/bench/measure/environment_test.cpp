#include "bench/measure/environment.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/unit/bench/measure/thread_ranks.hpp"

namespace fsdp {
namespace {

Capabilities a_machine() {
  Capabilities capabilities;
  capabilities.compute = "a machine";
  capabilities.libraries = {{"MPI", "a library 1.2"}};
  return capabilities;
}

TEST(Environment, RecordsListedVariablesAndNoOthers) {
  setenv("OMP_NUM_THREADS", "3", 1);
  setenv("MPIR_CVAR_ODD_EVEN_CLIQUES", "1", 1);
  setenv("FSDP_TEST_SECRET", "do not record", 1);
  SerialControlPlane control;
  const EnvironmentInfo info = environment_info(control, a_machine());
  EXPECT_EQ(info.variables.at("OMP_NUM_THREADS"), "3");
  EXPECT_EQ(info.variables.at("MPIR_CVAR_ODD_EVEN_CLIQUES"), "1");
  for (const auto& [name, value] : info.variables) {
    EXPECT_TRUE(is_recorded_variable(name)) << name;
  }
  EXPECT_FALSE(info.variables.contains("FSDP_TEST_SECRET"));
  EXPECT_FALSE(info.variables.contains("PATH"));
}

TEST(Environment, APrefixMatchesOnlyWithItsStar) {
  EXPECT_TRUE(is_recorded_variable("MPIR_CVAR_CH4_NETMOD"));
  EXPECT_TRUE(is_recorded_variable("UCX_TLS"));
  EXPECT_FALSE(is_recorded_variable("UCX_TLS_EXTRA"));
  EXPECT_FALSE(is_recorded_variable("XMPIR_CVAR_A"));
  EXPECT_FALSE(is_recorded_variable(""));
}

TEST(Environment, NamesToolMachineAndTime) {
  SerialControlPlane control;
  const EnvironmentInfo info = environment_info(control, a_machine());
  EXPECT_FALSE(info.tool_version.empty());
  EXPECT_FALSE(info.git_state.empty());
  EXPECT_FALSE(info.cpu.empty());
  EXPECT_GE(info.logical_cpus, 1);
  EXPECT_EQ(info.hosts.size(), 1U);
  EXPECT_EQ(info.libraries.at("compute"), "a machine");
  EXPECT_EQ(info.libraries.at("MPI"), "a library 1.2");
  ASSERT_EQ(info.started_utc.size(), 20U) << info.started_utc;
  EXPECT_EQ(info.started_utc[10], 'T');
  EXPECT_EQ(info.started_utc.back(), 'Z');
}

TEST(Environment, RanksOfAHostShareItsMemory) {
  SerialControlPlane alone;
  const auto whole = available_memory_per_rank(alone);
  ASSERT_TRUE(whole);
  test::ThreadRanks ranks(4);
  ranks.run([&](ControlPlane& control) {
    const auto share = available_memory_per_rank(control);
    ASSERT_TRUE(share);
    EXPECT_NEAR(static_cast<double>(share->value), static_cast<double>(whole->value) / 4,
                0.1 * static_cast<double>(whole->value));
  });
}

}  // namespace
}  // namespace fsdp
