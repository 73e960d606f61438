// Every policy that a plan can have is written as text that reads back to the same policy.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/config/print_policy.hpp"
#include "core/config/run_config.hpp"
#include "tests/property/generators.hpp"
#include "tests/unit/core/config/policy_fields.hpp"

namespace fsdp {
namespace {

RC_GTEST_PROP(Policy, PrintsAndReadsBack, ()) {
  const test::RandomPlan random = test::any_plan();
  const std::string text =
      "model: {name: tiny, family: gpt2, vocab: 64, positions: 16, layers: 2, hidden: 8, heads: "
      "2}\n" +
      print_policy(random.policy);
  RC_ASSERT(policy_fields(load_run_config_text(text, "run.yaml").policy) ==
            policy_fields(random.policy));
}

}  // namespace
}  // namespace fsdp
