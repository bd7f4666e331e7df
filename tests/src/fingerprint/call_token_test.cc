// SPDX-License-Identifier: Apache-2.0
#include "src/fingerprint/call_token.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <type_traits>

namespace dynamiccl {
namespace {

CollectiveCall Call(Collective collective, uint64_t bytes) {
  CollectiveCall call;
  call.collective = collective;
  call.bytes = bytes;
  call.n_ranks = 4;
  return call;
}

int16_t At(const CallToken& token, TokenFeature feature) {
  return token[static_cast<size_t>(feature)];
}

IssuedCall RandomIssuedCall(std::mt19937_64& random) {
  IssuedCall issued;
  issued.call.collective = static_cast<Collective>(random() % kCollectives);
  issued.call.data_type = static_cast<DataType>(random() % kDataTypes);
  issued.call.op = static_cast<ReduceOp>(random() % kReduceOps);
  issued.call.bytes = random() >> (random() % 64);
  issued.call.group_size = static_cast<uint16_t>(random());
  issued.call.n_ranks = static_cast<int32_t>(random() >> 40);
  issued.labelled_role = static_cast<Role>(random() % kLabelledRoles);
  issued.labelled_phase = static_cast<Phase>(random() % kPhases);
  issued.labelled_stage = static_cast<ZeroStage>(random() % kZeroStages);
  issued.rank = static_cast<int32_t>(random() % 8);
  issued.issued_ns = static_cast<int64_t>(random() >> 2);
  return issued;
}

// A tokenizer takes only CollectiveCall by const reference. What a single rank observed cannot be passed.
static_assert(!std::is_invocable_v<decltype(&CallTokenizer::Next), CallTokenizer&, const IssuedCall&>);
static_assert(!std::is_convertible_v<IssuedCall, CollectiveCall>);

TEST(CallToken, StrippingTheLabelsChangesNothing) {
  std::mt19937_64 random(3);
  CallTokenizer labelled, stripped;
  for (int i = 0; i < 10'000; ++i) {
    const IssuedCall with = RandomIssuedCall(random);
    IssuedCall without;
    without.call = with.call;
    ASSERT_EQ(labelled.Next(with.call), stripped.Next(without.call));
  }
}

TEST(CallToken, ValuesStayWithinTheirLimits) {
  std::mt19937_64 random(4);
  CallTokenizer tokenizer;
  for (int i = 0; i < 100'000; ++i) {
    const CallToken token = tokenizer.Next(RandomIssuedCall(random).call);
    for (size_t f = 0; f < kTokenFeatures; ++f) ASSERT_LE(std::abs(token[f]), kTokenLimits[f]) << f;
  }
}

TEST(CallToken, NamesTheCollectiveAndItsSize) {
  CallTokenizer tokenizer;
  const CallToken token = tokenizer.Next(Call(Collective::kReduceScatter, 1 << 20));
  EXPECT_EQ(At(token, TokenFeature::kReduceScatter), kTokenOne);
  EXPECT_EQ(At(token, TokenFeature::kAllReduce), 0);
  EXPECT_EQ(At(token, TokenFeature::kSize), 20 * kTokenOne / 16);
  EXPECT_EQ(At(token, TokenFeature::kSizeChange), 0);
  EXPECT_EQ(At(token, TokenFeature::kRanks), 2 * kTokenOne / 8);
  EXPECT_EQ(At(token, TokenFeature::kTiny), 0);
}

TEST(CallToken, ComparesWithTheCallBeforeAndTheLargest) {
  CallTokenizer tokenizer;
  tokenizer.Next(Call(Collective::kAllReduce, 1 << 20));
  const CallToken scalar = tokenizer.Next(Call(Collective::kAllReduce, 4));
  EXPECT_EQ(At(scalar, TokenFeature::kTiny), kTokenOne);
  EXPECT_EQ(At(scalar, TokenFeature::kSizeChange), -16384) << "18 octaves / 4 is beyond the limit";
  EXPECT_EQ(At(scalar, TokenFeature::kBelowLargest), 18 * kTokenOne / 8);
  EXPECT_EQ(At(scalar, TokenFeature::kSameSize), 0);
  EXPECT_EQ(At(tokenizer.Next(Call(Collective::kAllReduce, 4)), TokenFeature::kSameSize), kTokenOne);
  EXPECT_EQ(At(tokenizer.Next(Call(Collective::kAllGather, 4)), TokenFeature::kSameSize), 0)
      << "another collective";
}

TEST(CallToken, FlagsExtremaOfReductionsOnly) {
  CallTokenizer tokenizer;
  CollectiveCall call = Call(Collective::kAllReduce, 4);
  call.op = ReduceOp::kMax;
  EXPECT_EQ(At(tokenizer.Next(call), TokenFeature::kExtremum), kTokenOne);
  call.collective = Collective::kAllGather;
  EXPECT_EQ(At(tokenizer.Next(call), TokenFeature::kExtremum), 0) << "an AllGather has no operator";
}

TEST(TokenSchema, HashIsFrozen) {
  // A change of this hash makes every policy file in use unreadable. Raise the number in the schema's first
  // line at the same time.
  EXPECT_EQ(TokenSchemaHash(), 10580486923574147534u);
}

}  // namespace
}  // namespace dynamiccl
