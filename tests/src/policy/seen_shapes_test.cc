// SPDX-License-Identifier: Apache-2.0
#include "src/policy/seen_shapes.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <tuple>

namespace dynamiccl {
namespace {

TEST(SeenShapes, EachPartOfAShapeMakesItNew) {
  CollectiveCall call;
  call.bytes = 4096;
  SeenShapes seen;
  EXPECT_TRUE(seen.IsNew(call, 1));
  EXPECT_FALSE(seen.IsNew(call, 2));
  CollectiveCall other = call;
  other.bytes = 4097;
  EXPECT_TRUE(seen.IsNew(other, 3));
  other = call;
  other.collective = Collective::kAllGather;
  EXPECT_TRUE(seen.IsNew(other, 4));
  other = call;
  other.data_type = DataType::kBfloat16;
  EXPECT_TRUE(seen.IsNew(other, 5));
  other = call;
  other.op = ReduceOp::kMax;
  EXPECT_TRUE(seen.IsNew(other, 6));
  other = call;
  other.communicator = 9;
  other.call_number = 77;
  EXPECT_FALSE(seen.IsNew(other, 7)) << "not of the shape";
  EXPECT_EQ(seen.CallsSinceNew(10), 4u);
}

// Compares with a set. There are fewer shapes than the object has room for, so a shape is new only the first
// time.
TEST(SeenShapes, IsASetAsLongAsThereIsRoom) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    SeenShapes seen;
    std::set<std::tuple<Collective, uint64_t>> known;
    for (uint64_t number = 1; number <= 5000; ++number) {
      CollectiveCall call;
      call.collective = static_cast<Collective>(random() % kTunableCollectives);
      call.bytes = (random() % 12 + 1) << (4 * (random() % 4));
      const bool first = known.emplace(call.collective, call.bytes).second;
      EXPECT_EQ(seen.IsNew(call, number), first) << "seed " << seed << " call " << number;
    }
    EXPECT_GT(known.size(), 200u);
    EXPECT_LE(known.size(), SeenShapes::kShapes);
  }
}

TEST(SeenShapes, ManyMoreShapesThanRoomAreNotNew) {
  SeenShapes seen;
  size_t news = 0;
  for (uint64_t number = 1; number <= 100'000; ++number) {
    CollectiveCall call;
    call.bytes = number * 16;
    news += seen.IsNew(call, number) ? 1 : 0;
  }
  EXPECT_EQ(news, SeenShapes::kShapes);
  seen.Forget();
  EXPECT_TRUE(seen.IsNew({}, 1));
}

}  // namespace
}  // namespace dynamiccl
