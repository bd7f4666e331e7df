// SPDX-License-Identifier: Apache-2.0
// The token of one call of one communicator: 16 small integers, the structure LSTM's only input. A token is
// computed from CollectiveCall alone, whose fields are equal on all ranks. It contains no labels, times or
// rank numbers, so all ranks recognise the same structure.
#pragma once

#include <array>
#include <cstdint>

#include "src/collective/collective_call.h"

namespace dynamiccl {

// X(name, limit, meaning): the inputs in order. Values are fixed point with kTokenOne for 1.0, clamped to
// |value| <= limit; the limits prove that the network's accumulators cannot overflow. This list is the
// feature schema: its text is hashed, and a policy trained on another schema is refused.
#define DYNAMICCL_TOKEN_FEATURES(X)                                                                     \
  X(kAllReduce, 4096, "1 for AllReduce")                                                                \
  X(kAllGather, 4096, "1 for AllGather")                                                                \
  X(kReduceScatter, 4096, "1 for ReduceScatter")                                                        \
  X(kBroadcast, 4096, "1 for Broadcast")                                                                \
  X(kReduce, 4096, "1 for Reduce")                                                                      \
  X(kPointToPoint, 4096, "1 for Send, Recv or both")                                                    \
  X(kSize, 16384, "log2(bytes) / 16")                                                                   \
  X(kSizeChange, 16384, "(log2(bytes) - log2(bytes of the call before)) / 4, clamped; 0 for the first") \
  X(kSameSize, 4096, "1 if the call before had the same collective and bytes")                          \
  X(kBelowLargest, 16384, "(log2(largest bytes so far) - log2(bytes)) / 8, clamped")                    \
  X(kTiny, 4096, "1 up to 256 bytes")                                                                   \
  X(kElementSize, 4096, "log2(bytes of an element) / 4")                                                \
  X(kInteger, 4096, "1 for an integer type")                                                            \
  X(kExtremum, 4096, "1 for a reduction by min or max")                                                 \
  X(kGroup, 16384, "log2(calls in the group) / 4")                                                      \
  X(kRanks, 16384, "log2(ranks) / 8")

enum class TokenFeature : uint8_t {
#define DYNAMICCL_TOKEN_FEATURE(name, limit, meaning) name,
  DYNAMICCL_TOKEN_FEATURES(DYNAMICCL_TOKEN_FEATURE)
#undef DYNAMICCL_TOKEN_FEATURE
};

// Largest magnitude of each feature, by TokenFeature.
inline constexpr int16_t kTokenLimits[] = {
#define DYNAMICCL_TOKEN_FEATURE(name, limit, meaning) limit,
    DYNAMICCL_TOKEN_FEATURES(DYNAMICCL_TOKEN_FEATURE)
#undef DYNAMICCL_TOKEN_FEATURE
};
inline constexpr int kTokenFeatures = sizeof(kTokenLimits) / sizeof(kTokenLimits[0]);
static_assert(kTokenFeatures == 16);

// Fraction bits of a feature. The largest limit, 16384, then stands for 4.0.
inline constexpr int kTokenFractionBits = 12;
inline constexpr int kTokenOne = 1 << kTokenFractionBits;

using CallToken = std::array<int16_t, kTokenFeatures>;

// Returns the call that stands for a question of NCCL to its tuner. A question tells collective, bytes and
// ranks, but not the data type, the operator and the size of the group: it becomes a lone sum of float32.
// With bfloat16 instead, the LSTM recognised no job better and one job worse (roles of this project's
// trainer).
inline CollectiveCall CallOfQuestion(Collective collective, uint64_t bytes, int n_ranks) {
  CollectiveCall call;
  call.bytes = bytes;
  call.collective = collective;
  call.data_type = DataType::kFloat32;
  call.n_ranks = n_ranks;
  return call;
}

// Returns the XXH3 hash of the schema's canonical text. Policy files carry it.
uint64_t TokenSchemaHash();

// Turns the calls of one communicator into tokens. It remembers the previous call and the largest size, so
// every call must be passed in, in program order (call number, then index in group). The communicator's
// structure agent owns it; one thread at a time. It allocates nothing and cannot fail.
class CallTokenizer {
 public:
  CallToken Next(const CollectiveCall& call);

  friend bool operator==(const CallTokenizer&, const CallTokenizer&) = default;

 private:
  bool first_ = true;
  Collective previous_collective_ = Collective::kAllReduce;
  uint64_t previous_bytes_ = 0;
  // log2 of the previous call's bytes and of the largest call's bytes, with 8 fraction bits.
  int32_t previous_size_ = 0;
  int32_t largest_size_ = 0;
};

}  // namespace dynamiccl
