#include "core/advice/gathers.hpp"

#include <gtest/gtest.h>

#include "tests/unit/core/advice/advised.hpp"

namespace fsdp {
namespace {

using Use = Gather::Use;

/// Uses of the gathers of a unit, in order.
std::vector<Use> uses(const Schedule& schedule, const std::string& unit) {
  std::vector<Use> out;
  for (const Gather& gather : gathers_of(schedule)) {
    if (schedule.plan[gather.unit].name == unit) {
      out.push_back(gather.use);
    }
  }
  return out;
}

TEST(Gathers, GoIntoProductsOrLookUpsOrNothing) {
  const Schedule titan = test::schedule_of(test::recorded("llama-titan"));
  EXPECT_EQ(uses(titan, "model.layers.1"), (std::vector<Use>{Use::product, Use::product}));
  EXPECT_EQ(uses(titan, "model.embed_tokens").back(), Use::no_product);
  const Schedule frozen = test::schedule_of(test::recorded("llama-frozen-blocks"));
  EXPECT_EQ(uses(frozen, "model.layers.1"), (std::vector<Use>{Use::product, Use::none}));
}

}  // namespace
}  // namespace fsdp
