// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/carried_choices.h"

#include <gtest/gtest.h>

namespace dynamiccl {
namespace {

constexpr CollectiveConfig kLow{Algorithm::kRing, Protocol::kLL, 2};
constexpr CollectiveConfig kHigh{Algorithm::kTree, Protocol::kSimple, 4};

TableKey AllReduceOf(uint8_t size_class, Role role = Role::kGradientReduce) {
  return {Collective::kAllReduce, {size_class}, role};
}

std::set<uint32_t> CodesOf(const std::vector<KeyPlan>& entries) {
  std::set<uint32_t> codes;
  for (const KeyPlan& entry : entries) codes.insert(KeyCode(entry.key));
  return codes;
}

TEST(CarriedChoices, AreOfTheNearestSettledSize) {
  const std::vector<KeyPlan> settled{{AllReduceOf(40), kLow, {}}, {AllReduceOf(44), kHigh, {}}};
  const auto carried = CarriedChoices(settled, CodesOf(settled));
  ASSERT_EQ(carried.size(), 19u) << "32 to 52 without 40 and 44";
  for (const KeyPlan& entry : carried) {
    EXPECT_EQ(entry.choice, entry.key.size_class.index <= 42 ? kLow : kHigh)
        << int{entry.key.size_class.index};
    EXPECT_TRUE(entry.arms.empty());
  }
  EXPECT_EQ(carried.front().key.size_class.index, 40 - kCarriedClasses);
  EXPECT_EQ(carried.back().key.size_class.index, 44 + kCarriedClasses);
}

TEST(CarriedChoices, DoNotDependOnTheOrder) {
  const std::vector<KeyPlan> settled{{AllReduceOf(44), kHigh, {}}, {AllReduceOf(40), kLow, {}}};
  for (const KeyPlan& entry : CarriedChoices(settled, CodesOf(settled)))
    EXPECT_EQ(entry.choice, entry.key.size_class.index <= 42 ? kLow : kHigh)
        << int{entry.key.size_class.index};
}

TEST(CarriedChoices, LeaveOutKeysWithAnEntryOfTheirOwn) {
  const auto carried = CarriedChoices(
      std::vector<KeyPlan>{{AllReduceOf(40), kLow, {}}},
      {KeyCode(AllReduceOf(40)), KeyCode(AllReduceOf(42)), KeyCode(AllReduceOf(44, Role::kScalar))});
  EXPECT_EQ(carried.size(), size_t{2 * kCarriedClasses} - 1) << "another role's entry is another key's";
  for (const KeyPlan& entry : carried) {
    EXPECT_NE(entry.key.size_class.index, 42);
    EXPECT_EQ(entry.key.role, Role::kGradientReduce);
  }
}

TEST(CarriedChoices, EndWithTheSizeClasses) {
  const std::vector<KeyPlan> largest{{AllReduceOf(253), kHigh, {}}}, least{{AllReduceOf(1), kLow, {}}};
  EXPECT_EQ(CarriedChoices(largest, CodesOf(largest)).size(), size_t{kCarriedClasses} + 2);
  EXPECT_EQ(CarriedChoices(largest, CodesOf(largest)).back().key.size_class.index, 255);
  EXPECT_EQ(CarriedChoices(least, CodesOf(least)).size(), size_t{kCarriedClasses} + 1);
  EXPECT_TRUE(CarriedChoices({}, {}).empty());
}

TEST(CarriedToRoles, AreOfTheSameSizeWhereSettledRolesAgree) {
  const TableKey reduce = AllReduceOf(40), activation = AllReduceOf(40, Role::kActivation);
  const std::vector<KeyPlan> one{{reduce, kLow, {}}};
  const auto carried = CarriedToRoles(one, {KeyCode(reduce), KeyCode(activation)});
  ASSERT_EQ(carried.size(), size_t{kRoles} - 3) << "all but scalars and the two that are known";
  for (const KeyPlan& entry : carried) {
    EXPECT_EQ(entry.choice, kLow);
    EXPECT_EQ(entry.key.size_class.index, 40);
    EXPECT_NE(entry.key.role, Role::kScalar);
  }
  const std::set<uint32_t> both{KeyCode(reduce), KeyCode(activation)};
  EXPECT_EQ(CarriedToRoles(std::vector<KeyPlan>{{reduce, kLow, {}}, {activation, kLow, {}}}, both).size(),
            size_t{kRoles} - 3);
  EXPECT_TRUE(
      CarriedToRoles(std::vector<KeyPlan>{{reduce, kLow, {}}, {activation, kHigh, {}}}, both).empty());
}

}  // namespace
}  // namespace dynamiccl
