#include <gtest/gtest.h>

#include "bad_config.hpp"

namespace fsdp {
namespace {

TEST(ReadSections, EveryValue) {
  const RunConfig config = load_run_config_text(
      tiny_model +
          "mesh: {replicate: 2, shard: 4}\n"
          "batch: {sequence: 128, micro_batch: 3, accumulate: 2, sync: last}\n"
          "space:\n"
          "  units: {sizes: [1, 6], uneven: false}\n"
          "  prefetch: {forward: [0, 3], backward: [2]}\n"
          "  reshard_after_forward: [false, 2]\n"
          "memory: {limit: 1.5 GiB}\n"
          "measure:\n"
          "  backend: sim\n"
          "  stop: {rule: relative_error, max_error: 5 %, max_time: 2 s, min_samples: 10,\n"
          "         max_samples: 20}\n"
          "  warmup: 0\n"
          "  verify_every: 7\n"
          "  seed: 42\n"
          "  timeout: 5 s\n"
          "tune: {budget: 1 min, indifference: 0 %, survivors: 3}\n"
          "output: out\n",
      "run.yaml");
  EXPECT_EQ(config.mesh->replicate, 2);
  EXPECT_EQ(config.mesh->shard, 4);
  EXPECT_EQ(config.batch.sequence, 128);
  EXPECT_EQ(config.batch.micro_batch, 3);
  EXPECT_EQ(config.batch.accumulate, 2);
  EXPECT_EQ(config.space.unit_sizes, (std::vector<int>{1, 6}));
  EXPECT_EQ(config.space.forward_prefetch, (std::vector<int>{0, 3}));
  EXPECT_EQ(config.space.backward_prefetch, (std::vector<int>{2}));
  EXPECT_EQ(config.space.reshard, (std::vector<Reshard>{Reshard::keep(), Reshard{2}}));
  EXPECT_EQ(config.memory_limit, Bytes{1610612736});
  EXPECT_EQ(config.measure.backend, BackendChoice::sim);
  EXPECT_EQ(config.measure.stop.max_error, 0.05);
  EXPECT_EQ(config.measure.stop.max_time, Nanoseconds{2'000'000'000});
  EXPECT_EQ(config.measure.stop.min_samples, 10);
  EXPECT_EQ(config.measure.stop.max_samples, 20);
  EXPECT_EQ(config.measure.warmup, 0);
  EXPECT_EQ(config.measure.verify_every, 7);
  EXPECT_EQ(config.measure.seed, 42U);
  EXPECT_EQ(config.measure.timeout, Nanoseconds{5'000'000'000});
  EXPECT_EQ(config.tune.budget, Nanoseconds{60'000'000'000});
  EXPECT_EQ(config.tune.indifference, 0.0);
  EXPECT_EQ(config.tune.survivors, 3);
  EXPECT_EQ(config.output, "out");
}

TEST(ReadSections, ManyMinimumSamplesRaiseTheMaximumThatWasNotSet) {
  const RunConfig config =
      load_run_config_text(tiny_model + "measure: {stop: {min_samples: 500}}\n", "run.yaml");
  EXPECT_EQ(config.measure.stop.max_samples, 500);
}

TEST(ReadSections, EmptySectionsKeepTheDefaults) {
  const RunConfig config = load_run_config_text(
      tiny_model + "batch:\npolicy:\nspace:\nmemory:\nmeasure:\ntune:\nmesh:\ncluster:\n",
      "run.yaml");
  EXPECT_EQ(print_config(config), print_config(load_run_config_text(tiny_model, "run.yaml")));
}

TEST(ReadSections, Refusals) {
  expect_all_refused({
      {"mesh: {replicate: 2}\n", 1, 7, "mesh.shard", "is missing", "add 'shard: ...'"},
      {"mesh: {shard: 0}\n", 1, 15, "mesh.shard", "must be between 1 and 1048576", ""},
      {"mesh: {replicate: 1024, shard: 1025}\n", 1, 32, "mesh.shard",
       "replicate x shard must be at most 1048576, is 1049600", ""},
      {"batch: {sync: first}\n", 1, 15, "batch.sync",
       "'first' is not one of last, every, reduce_scatter", ""},
      {"space: {units: {sizes: [1, 1]}}\n", 1, 28, "space.units.sizes[1]", "1 is listed twice", ""},
      {"space: {units: {uneven: true}}\n", 1, 25, "space.units.uneven",
       "not supported by this release", "write false"},
      {"space: {shard_group: [8]}\n", 1, 8 + 1, "space.shard_group",
       "not supported by this release", "remove it"},
      {"space: {prefetch: {backward: [0]}}\n", 1, 31, "space.prefetch.backward[0]",
       "must be between 1 and 64", ""},
      {"mesh: {shard: 6}\nspace: {reshard_after_forward: [true, 4]}\n", 2, 39,
       "space.reshard_after_forward[1]", "must divide the shard group of 6", ""},
      {"space: {reshard_after_forward: [true, true]}\n", 1, 39, "space.reshard_after_forward[1]",
       "listed twice", ""},
      {"measure: {backend: nccl}\n", 1, 20, "measure.backend", "not supported by this release",
       "auto, sim, mpi"},
      {"measure: {backend: gpu}\n", 1, 20, "measure.backend", "'gpu' is not one of auto, sim, mpi",
       ""},
      {"measure: {stop: {rule: forever}}\n", 1, 24, "measure.stop.rule",
       "'forever' is not one of relative_error", ""},
      {"measure: {stop: {max_error: 0 %}}\n", 1, 29, "measure.stop.max_error",
       "must be above 0 % and at most 100 %", ""},
      {"measure: {stop: {max_error: 101 %}}\n", 1, 29, "measure.stop.max_error", "at most 100 %",
       ""},
      {"measure: {stop: {min_samples: 9, max_samples: 8}}\n", 1, 47, "measure.stop.max_samples",
       "8 is below min_samples 9", ""},
      {"measure: {timeout: 0 s}\n", 1, 20, "measure.timeout", "must be above 0", ""},
      {"measure: {seed: -1}\n", 1, 17, "measure.seed", "must be between 0 and", ""},
      {"tune: {indifference: 200 %}\n", 1, 22, "tune.indifference", "at most 100 %", ""},
      {"tune: {survivors: 0}\n", 1, 19, "tune.survivors", "must be between 1 and", ""},
  });
}

}  // namespace
}  // namespace fsdp
