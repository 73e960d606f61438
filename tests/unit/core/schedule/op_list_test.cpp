#include "core/schedule/op_list.hpp"

#include <gtest/gtest.h>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

TEST(OpList, AttachesAWaitToTheNextOpOfTheWaitingStream) {
  OpList list;
  const OpId a = list.add(StepEnd{}, Stream::compute, {});
  list.wait(Stream::all_gather, a);
  list.add(StepEnd{}, Stream::compute, {});
  list.add(StepEnd{}, Stream::all_gather, {});
  const auto ops = list.take();
  EXPECT_TRUE(ops[1].after.empty());
  EXPECT_EQ(ops[2].after, std::vector<OpId>{a});
}

TEST(OpList, KeepsWaitsThatAnEarlierOneImplies) {
  OpList list;
  const OpId a = list.add(StepEnd{}, Stream::compute, {});
  const OpId b = list.add(StepEnd{}, Stream::compute, {});
  list.wait(Stream::all_gather, b);
  list.wait(Stream::all_gather, a);  // implied by b, and issued by PyTorch all the same
  list.wait(Stream::compute, b);     // a stream never waits for itself
  list.add(StepEnd{}, Stream::all_gather, {});
  list.add(StepEnd{}, Stream::compute, {});
  const auto ops = list.take();
  EXPECT_EQ(ops[2].after, (std::vector<OpId>{b, a}));
  EXPECT_TRUE(ops[3].after.empty());
}

TEST(OpList, RefusesAWaitForNothing) {
  OpList list;
  EXPECT_THROW(list.wait(Stream::compute, {0}), ContractViolation);
  EXPECT_FALSE(list.newest(Stream::compute).has_value());
}

}  // namespace
}  // namespace fsdp
