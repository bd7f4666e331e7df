// SPDX-License-Identifier: Apache-2.0
// Computes tokens in integers only, so that all ranks and machines get the same bits. Sizes enter as log2
// with 8 fraction bits (fixed_log2.h); multiplying by a power of two gives each feature its scale.
#include "src/fingerprint/call_token.h"

// The hash is compiled in: the object that is loaded into jobs must not need libxxhash.so.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "src/fingerprint/fixed_log2.h"

namespace dynamiccl {
namespace {

constexpr std::string_view kSchema = "dynamiccl call token 1, int16, 12 fraction bits\n"
#define DYNAMICCL_TOKEN_FEATURE(name, limit, meaning) #name " " #limit " " meaning "\n"
    DYNAMICCL_TOKEN_FEATURES(DYNAMICCL_TOKEN_FEATURE)
#undef DYNAMICCL_TOKEN_FEATURE
    ;

// Returns the feature that a token sets to 1 for this collective.
TokenFeature OneHot(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return TokenFeature::kAllReduce;
    case Collective::kAllGather:
      return TokenFeature::kAllGather;
    case Collective::kReduceScatter:
      return TokenFeature::kReduceScatter;
    case Collective::kBroadcast:
      return TokenFeature::kBroadcast;
    case Collective::kReduce:
      return TokenFeature::kReduce;
    default:
      return TokenFeature::kPointToPoint;
  }
}

bool IsInteger(DataType type) {
  return type <= DataType::kUint64;
}
bool IsExtremum(const CollectiveCall& call) {
  return Reduces(call.collective) && (call.op == ReduceOp::kMin || call.op == ReduceOp::kMax);
}

// Sets one feature, clamped to its limit.
void Set(CallToken& token, TokenFeature feature, int32_t value) {
  const auto index = static_cast<size_t>(feature);
  const int32_t limit = kTokenLimits[index];
  token[index] = static_cast<int16_t>(std::clamp(value, -limit, limit));
}

int32_t Flag(bool value) {
  return value ? kTokenOne : 0;
}

}  // namespace

uint64_t TokenSchemaHash() {
  return XXH3_64bits(kSchema.data(), kSchema.size());
}

CallToken CallTokenizer::Next(const CollectiveCall& call) {
  // The feature is log2(x) / 16 with 12 fraction bits. As an integer, this is the same as log2(x) with 8
  // fraction bits.
  const int32_t size = !first_ && call.bytes == previous_bytes_ ? previous_size_ : FixedLog2<8>(call.bytes);
  largest_size_ = std::max(largest_size_, size);
  const bool same = !first_ && call.bytes == previous_bytes_ && call.collective == previous_collective_;

  CallToken token{};
  Set(token, OneHot(call.collective), kTokenOne);
  Set(token, TokenFeature::kSize, size);
  Set(token, TokenFeature::kSizeChange, first_ ? 0 : (size - previous_size_) * 4);
  Set(token, TokenFeature::kSameSize, Flag(same));
  Set(token, TokenFeature::kBelowLargest, (largest_size_ - size) * 2);
  Set(token, TokenFeature::kTiny, Flag(call.bytes <= kTinyBytes));
  Set(token, TokenFeature::kElementSize, FixedLog2<8>(ElementBytes(call.data_type)) * 4);
  Set(token, TokenFeature::kInteger, Flag(IsInteger(call.data_type)));
  Set(token, TokenFeature::kExtremum, Flag(IsExtremum(call)));
  Set(token, TokenFeature::kGroup, FixedLog2<8>(call.group_size) * 4);
  Set(token, TokenFeature::kRanks, FixedLog2<8>(static_cast<uint64_t>(std::max(call.n_ranks, 1))) * 2);

  first_ = false;
  previous_collective_ = call.collective;
  previous_bytes_ = call.bytes;
  previous_size_ = size;
  return token;
}

}  // namespace dynamiccl
