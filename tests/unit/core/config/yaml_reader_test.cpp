#include "core/config/yaml_reader.hpp"

#include <gtest/gtest.h>

#include <string>

#include "bad_config.hpp"

namespace fsdp {
namespace {

TEST(YamlReader, BrokenDocuments) {
  expect_all_refused({
      {"", 1, 1, "", "the file is empty", ""},
      {"# only a comment\n", 1, 1, "", "the file is empty", ""},
      {"~\n", 1, 1, "", "the file is empty", ""},
      {"model: [1\n", 2, 1, "", "not valid YAML", ""},
      {"a:\n  b: 1\n c: 2\n", 3, 2, "", "not valid YAML", ""},
      {"batch: *nowhere\n", 1, 8, "", "not valid YAML", ""},
      {"batch: {}\n---\nbatch: {}\n", 2, 1, "", "a second document", "'---'"},
      {", batch: {}\n", 1, 1, "", "not valid YAML: unexpected text", ""},
      {"batch: {}\n]\n", 2, 1, "", "not valid YAML", ""},
      {"just text\n", 1, 1, "", "must be a mapping, is a single value", ""},
      {"[a, b]\n", 1, 1, "", "must be a mapping, is a list", ""},
  });
}

TEST(YamlReader, DeepNestingIsRefusedAndNotFollowed) {
  for (const char* opening : {"[", "{a: ", "- "}) {
    std::string text = "output: ";
    for (int i = 0; i < 100'000; ++i) {
      text += opening;
    }
    EXPECT_THROW(load_run_config_text(text, "run.yaml"), ConfigError) << opening;
  }
}

TEST(YamlReader, Keys) {
  expect_all_refused({
      {"modle: x.yaml\n", 1, 1, "modle", "unknown key", "did you mean 'model'?"},
      {"batch:\n  sequence: 8\npolicy:\n  prefech: {forward: 1}\n", 4, 3, "policy.prefech",
       "unknown key", "did you mean 'prefetch'?"},
      {"memory: {colour: red}\n", 1, 10, "memory.colour", "unknown key", "known here: limit"},
      {"batch: {sequence: 8, micro_batch: 1, sequence: 16}\n", 1, 38, "batch.sequence",
       "duplicate key", "keep one"},
      {"tune: {}\noutput: a\ntune: {}\n", 3, 1, "tune", "duplicate key", "keep one"},
      {"policy:\n  reshard_units: {a: true, a: false}\n", 2, 28, "policy.reshard_units.a",
       "duplicate key", "keep one"},
      {"batch: {[1, 2]: 3}\n", 1, 9, "batch", "a key must be one word", ""},
      {"output: x\n", 1, 1, "model", "is missing", "add 'model: ...'"},
  });
}

TEST(YamlReader, Types) {
  expect_all_refused({
      {"batch: 8\n", 1, 8, "batch", "must be a mapping, is a single value", ""},
      {"batch: [8]\n", 1, 8, "batch", "must be a mapping, is a list", ""},
      {"batch: {sequence: many}\n", 1, 19, "batch.sequence", "must be a whole number, is 'many'",
       ""},
      {"batch: {sequence: 8.5}\n", 1, 19, "batch.sequence", "must be a whole number, is '8.5'", ""},
      {"batch: {sequence: '8'}\n", 1, 19, "batch.sequence", "must be a whole number",
       "remove the quotes"},
      {"batch: {sequence: [8]}\n", 1, 19, "batch.sequence", "must be a whole number, is a list",
       ""},
      {"batch:\n  sequence:\n  micro_batch: 1\n", 2, 3, "batch.sequence",
       "must be a whole number, is empty", ""},
      {"batch: {sequence: 0}\n", 1, 19, "batch.sequence", "must be between 1 and 16777216, is 0",
       ""},
      {"batch: {sequence: 99999999999999999999}\n", 1, 19, "batch.sequence",
       "must be between 1 and 16777216", ""},
      {"space: {units: {sizes: 3}}\n", 1, 24, "space.units.sizes", "must be a list", "write [a"},
      {"space: {units: {sizes: []}}\n", 1, 24, "space.units.sizes", "must not be an empty list",
       ""},
      {"output: ''\n", 1, 9, "output", "must not be empty text", ""},
      {"output: {a: b}\n", 1, 9, "output", "must be text, is a mapping", ""},
      {"policy: {root_reshard: yes}\n", 1, 24, "policy.root_reshard",
       "must be true or false, is 'yes'", ""},
      {"policy: {gradient_divide_factor: x}\n", 1, 34, "policy.gradient_divide_factor",
       "must be a number, is 'x'", ""},
  });
}

TEST(YamlReader, Units) {
  expect_all_refused({
      {"memory: {limit: 80}\n", 1, 17, "memory.limit", "needs a unit: B, KiB, MiB, GiB", ""},
      {"memory: {limit: 80 gigs}\n", 1, 17, "memory.limit", "unknown unit 'gigs'", ""},
      {"memory: {limit: -1 GiB}\n", 1, 17, "memory.limit", "must not be negative", ""},
      {"memory: {limit: 0 B}\n", 1, 17, "memory.limit", "must be above 0", ""},
      {"tune: {budget: 10}\n", 1, 16, "tune.budget", "needs a unit: ns, us, ms, s, min, h", ""},
      {"tune: {indifference: 0.01}\n", 1, 22, "tune.indifference", "needs a unit: %", ""},
  });
}

TEST(ConfigError, MessageIsOneLineWithEveryPart) {
  try {
    load_run_config_text("batch: {}\npolicy: {\"pre\\nfech\": 1}\n", "dir/run.yaml");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "dir/run.yaml:2:10: policy.pre fech: unknown key; did you mean 'prefetch'?");
  }
}

TEST(ConfigError, WithoutAPlaceNamesTheFile) {
  try {
    load_run_config("no/such/run.yaml");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "no/such/run.yaml: cannot be read: No such file or directory; check the path");
  }
}

}  // namespace
}  // namespace fsdp
