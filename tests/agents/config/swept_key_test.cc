// SPDX-License-Identifier: Apache-2.0
#include "agents/config/swept_key.h"

#include <gtest/gtest.h>

#include "tests/support/synthetic_sweep.h"

namespace dynamiccl::agents {
namespace {

MeasurementFile OneKey(std::vector<float> repeats) {
  MeasurementFile file = test::MakeSweep({.topologies = 1});
  file.rows = {
      {"t0", Collective::kAllReduce, 4096, {Algorithm::kRing, Protocol::kLL, 2}, false, std::move(repeats)}};
  return file;
}

TEST(KeysOf, HalvesOfTheRepeatsStayApart) {
  const auto keys = KeysOf({OneKey({1, 10, 2, 20, 3, 30})});
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(keys[0].configs[0].time.pick, 2);
  EXPECT_EQ(keys[0].configs[0].time.value, 20);
  EXPECT_FALSE(keys[0].default_choice);
  EXPECT_EQ(keys[0].question.allowed.count(), 1u);
}

TEST(KeysOf, CellsThatCannotBeSplitAreLeftOut) {
  EXPECT_TRUE(KeysOf({OneKey({1})}).empty());
  EXPECT_TRUE(KeysOf({OneKey({})}).empty());
  EXPECT_TRUE(KeysOf({OneKey({0, 0})}).empty());
}

// A file may hold several rows of one key and config, for example from two sweeps at different loads.
TEST(KeysOf, OfSeveralRowsOfACellTheFirstCounts) {
  MeasurementFile file = OneKey({10, 10});
  Measurement slow = file.rows[0], by_default = file.rows[0], slow_default = file.rows[0];
  slow.microseconds = slow_default.microseconds = {50, 50};
  by_default.is_default = slow_default.is_default = true;
  file.rows.insert(file.rows.end(), {by_default, slow, slow_default});
  const auto keys = KeysOf({file});
  ASSERT_EQ(keys.size(), 1u);
  ASSERT_EQ(keys[0].configs.size(), 1u);
  EXPECT_EQ(keys[0].configs[0].time.pick, 10);
  EXPECT_EQ(keys[0].default_choice->time.pick, 10);
}

TEST(KeysOf, FindsTheDefaultAndEveryConfig) {
  const auto keys = KeysOf({test::MakeSweep({.topologies = 2})});
  EXPECT_EQ(keys.size(), 2u * 3 * 13);
  for (const SweptKey& key : keys) {
    EXPECT_TRUE(key.default_choice);
    EXPECT_GE(key.configs.size(), 4u);
  }
}

TEST(SplitOf, HoldsOutEveryThirdSizeAndOneTopology) {
  const HoldOut hold_out{3, {"t1"}};
  size_t count[kSplits] = {};
  for (const SweptKey& key : KeysOf({test::MakeSweep({.topologies = 2})})) {
    ++count[static_cast<size_t>(SplitOf(key, hold_out))];
  }
  EXPECT_EQ(count[static_cast<size_t>(Split::kHeldOutTopology)], 3u * 13);
  EXPECT_EQ(count[static_cast<size_t>(Split::kHeldOutSize)], 3u * 4);
  EXPECT_EQ(count[static_cast<size_t>(Split::kSeen)], 3u * 9);
}

TEST(NotInFiles, NamesWhatNoFileHas) {
  const std::vector<MeasurementFile> files = {test::MakeSweep({.topologies = 2})};
  EXPECT_TRUE(NotInFiles({3, {"t1", "t*"}, files[0].contexts[0].model.fabric.n_ranks}, files).empty());
  EXPECT_EQ(NotInFiles({0, {"t1", "t7", "u*"}, 1000}, files),
            (std::vector<std::string>{"t7", "u*", "1000 ranks"}));
}

}  // namespace
}  // namespace dynamiccl::agents
