// Feeds thousands of damaged run files to the loader: whatever it is given, it answers with a
// configuration or a ConfigError, and what it accepts prints and reads back.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <string_view>

#include "bad_config.hpp"

namespace fsdp {
namespace {

const std::string seed_text = tiny_model + R"(mesh: {replicate: 1, shard: 8}
batch: {sequence: 128, micro_batch: 1, accumulate: 2, sync: last}
cluster:
  name: c
  origin: "not measured"
  ranks: 8
  collectives:
    - {kind: all_gather, dtype: bf16, points: [[1 KiB, 20 us], [1 MiB, 50 us]]}
  copies: [{kind: cast, points: [[1 KiB, 2 us]]}]
  gemms: [{m: 8, n: 8, k: 8, dtype: f32, time: 3 us}]
  gemm_rate: 5 TFLOP/s
policy:
  profile: fsdp2
  version: '2.14'
  wrap: {groups: [[a], [b, c]]}
  reshard_after_forward: 4
  reshard_units: {a+b: false}
  prefetch: {forward: {a: [b]}, backward: 2}
  param_dtype: bf16
  reduce_dtype: ~
  gradient_divide_factor: 1.0
space: {units: {sizes: [1, 2]}, prefetch: {forward: [0], backward: [1]}}
memory: {limit: 80 GiB}
measure: {stop: {max_error: 2 %, max_time: 20 s}, seed: 1}
tune: {budget: 10 min, indifference: 1 %}
output: results/runs
)";

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string mutated(std::string text) {
    const std::size_t edits = 1 + below(4);
    for (std::size_t i = 0; i < edits && !text.empty(); ++i) {
      edit(text);
    }
    return text;
  }

 private:
  static constexpr std::array<std::string_view, 32> tokens{
      "{",  "}",    "[",   "]",   ": ", ", ",     "\n",   "  ",
      "- ", "#",    "'",   "\"",  "~",  "null",   "true", "-1",
      "0",  "1e99", "nan", "&a ", "*a", "!!int ", "? ",   "| ",
      "> ", "%",    "---", "...", "\t", "\\x0",   "<<: ", "99999999999999999999"};

  std::size_t below(std::size_t end) { return static_cast<std::size_t>(random_() % end); }

  void edit(std::string& text) {
    const std::size_t at = below(text.size());
    switch (below(6)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, 1 + below(12));
        break;
      case 2:
        text.insert(at, tokens[below(tokens.size())]);
        break;
      case 3:
        text.insert(at, text.substr(below(text.size()), below(40)));
        break;
      case 4:
        text.resize(at);
        break;
      default:
        std::swap(text[at], text[below(text.size())]);
        break;
    }
  }

  std::mt19937_64 random_;
};

TEST(Mutation, TheUndamagedTextIsAccepted) {
  EXPECT_NO_THROW(load_run_config_text(seed_text, "run.yaml"));
}

TEST(Mutation, OnlyConfigErrorsAreThrown) {
  constexpr int texts = 6000;
  int refused = 0;
  Mutator mutator(20240607);
  for (int i = 0; i < texts; ++i) {
    const std::string text = mutator.mutated(seed_text);
    try {
      const RunConfig config = load_run_config_text(text, "run.yaml");
      const std::string printed = print_config(config);
      EXPECT_EQ(print_config(load_run_config_text(printed, "run.yaml")), printed) << text;
    } catch (const ConfigError& error) {
      ++refused;
      EXPECT_FALSE(error.reason().empty()) << text;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << text;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "text " << i << " threw " << error.what() << "\n" << text;
    }
  }
  // Most damage must be noticed, and some of it (in names and comments) is harmless.
  EXPECT_GT(refused, texts / 2);
  EXPECT_LT(refused, texts);
}

}  // namespace
}  // namespace fsdp
