#include "tuner/space/search_space.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

class SearchSpaceTest : public ::testing::Test {
 protected:
  SearchSpace search(const SpaceConfig& space) const {
    const Workload workload{model, {.replicate = 1, .shard = 2}, batch};
    return enumerate(workload, policy, space);
  }

  ModelSpec model = test::small_llama(4);
  FsdpPolicy policy = test::mixed_precision();
  Batch batch{.sequence = 16, .micro_batch = 1, .accumulate = 1};
};

TEST_F(SearchSpaceTest, TheDefaultComesFirstEvenWhereTheSpaceLeavesItOut) {
  SpaceConfig space;
  space.unit_sizes = {2};
  space.forward_prefetch = {1};
  space.backward_prefetch = {2};
  space.reshard = {Reshard::keep()};
  const SearchSpace result = search(space);
  ASSERT_EQ(result.candidates.size(), 2U);
  EXPECT_TRUE(result.candidates[0].is_default);
  EXPECT_EQ(result.candidates[0].label, to_text(policy));
  EXPECT_EQ(result.candidates[0].unit_blocks, 1);
  EXPECT_FALSE(result.candidates[1].is_default);
  EXPECT_EQ(result.candidates[1].unit_blocks, 2);
}

TEST_F(SearchSpaceTest, TheDefaultIsNotThereTwice) {
  SpaceConfig space;
  space.unit_sizes = {1};
  space.forward_prefetch = {0};
  space.backward_prefetch = {1};
  space.reshard = {Reshard::free()};
  const SearchSpace result = search(space);
  EXPECT_EQ(result.candidates.size(), 1U);
  EXPECT_EQ(result.enumerated, 2);
  EXPECT_EQ(result.duplicates, 1);
}

TEST_F(SearchSpaceTest, SizesBeyondTheBlocksAreOneCandidate) {
  SpaceConfig space;
  space.unit_sizes = {4, 5, 8, 100};
  space.forward_prefetch = {0};
  space.backward_prefetch = {1};
  space.reshard = {Reshard::free()};
  EXPECT_EQ(search(space).candidates.size(), 2U);  // the default and one unit of all blocks
}

TEST_F(SearchSpaceTest, APrefetchDeeperThanTheUnitsChangesNothing) {
  SpaceConfig space;
  space.unit_sizes = {4};  // the root and one unit
  space.forward_prefetch = {2, 3, 9};
  space.backward_prefetch = {1};
  space.reshard = {Reshard::free()};
  const SearchSpace result = search(space);
  EXPECT_EQ(result.candidates.size(), 2U);
  EXPECT_EQ(result.duplicates, 2);
}

TEST_F(SearchSpaceTest, CandidatesAreDifferentStepsUnderDifferentNames) {
  const SearchSpace result = search(SpaceConfig{});
  std::set<std::string> hashes;
  std::set<std::string> labels;
  for (const Candidate& candidate : result.candidates) {
    hashes.insert(candidate.hash);
    labels.insert(candidate.label);
    EXPECT_GT(candidate.memory.total().value, 0);
    EXPECT_EQ(to_text(candidate.schedule.plan.policy), candidate.label);
  }
  EXPECT_EQ(hashes.size(), result.candidates.size());
  EXPECT_EQ(labels.size(), result.candidates.size());
  EXPECT_EQ(result.enumerated, static_cast<int>(result.candidates.size()) + result.duplicates);
}

TEST_F(SearchSpaceTest, IsDeterministic) {
  const SearchSpace once = search(SpaceConfig{});
  const SearchSpace again = search(SpaceConfig{});
  ASSERT_EQ(once.candidates.size(), again.candidates.size());
  for (std::size_t i = 0; i < once.candidates.size(); ++i) {
    EXPECT_EQ(once.candidates[i].hash, again.candidates[i].hash);
  }
}

TEST(PrefetchDepth, ListsHaveNone) {
  EXPECT_EQ(prefetch_depth(Prefetch{2}), 2);
  EXPECT_FALSE(prefetch_depth(Prefetch{PrefetchLists{{"a", {"b"}}}}));
}

}  // namespace
}  // namespace fsdp
