// SPDX-License-Identifier: Apache-2.0
#include "src/policy/effect_features.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "src/collective/collective.h"
#include "src/fingerprint/call_token.h"
#include "src/fingerprint/fixed_log2.h"

namespace dynamiccl {
namespace {

constexpr std::string_view kSchema = "dynamiccl effect features 1, int16, 12 fraction bits\n"
#define DYNAMICCL_EFFECT_FEATURE(name, limit, meaning) #name " " #limit " " meaning "\n"
    DYNAMICCL_EFFECT_FEATURES(DYNAMICCL_EFFECT_FEATURE);
#undef DYNAMICCL_EFFECT_FEATURE

// The integer that stands for log2(x) with this many fraction bits also stands for log2(x) / 8 with 12
// fraction bits. The next constant does the same for log2(x) / 4.
constexpr int kEighth = 9;
constexpr int kQuarter = 10;

void Set(EffectInputs& inputs, EffectFeature feature, int32_t value) {
  const auto index = static_cast<size_t>(feature);
  const int32_t limit = kEffectLimits[index];
  inputs[index] = static_cast<int16_t>(std::clamp(value, -limit, limit));
}

void SetFlag(EffectInputs& inputs, EffectFeature feature) {
  Set(inputs, feature, kTokenOne);
}

// Converts a number to fixed point. The bounds keep the conversion defined.
int32_t Fixed(double value) {
  return static_cast<int32_t>(std::lround(std::clamp(value, -1e3, 1e3) * kTokenOne));
}

// log2 of a positive number with `Bits` fraction bits; 0 for numbers up to 1.
template <int Bits>
int32_t Log2Of(double value) {
  return value > 1 ? FixedLog2<Bits>(static_cast<uint64_t>(std::min(value, 1e18))) : 0;
}

void SetRole(EffectInputs& inputs, Role role) {
  using F = EffectFeature;
  switch (role) {
    case Role::kParameterGather:
      return SetFlag(inputs, F::kParameterGather);
    case Role::kGradientReduce:
      return SetFlag(inputs, F::kGradientReduce);
    case Role::kPostStepGather:
      return SetFlag(inputs, F::kPostStepGather);
    case Role::kActivation:
      return SetFlag(inputs, F::kActivation);
    case Role::kScalar:
      return SetFlag(inputs, F::kScalar);
    case Role::kBackwardGather:
      return SetFlag(inputs, F::kBackwardGather);
    case Role::kUnknown:
    case Role::kOther:
      return;
  }
}

void SetPhase(EffectInputs& inputs, Phase phase) {
  if (phase == Phase::kForward) SetFlag(inputs, EffectFeature::kForward);
  if (phase == Phase::kBackward) SetFlag(inputs, EffectFeature::kBackward);
  if (phase == Phase::kOptimizer) SetFlag(inputs, EffectFeature::kOptimizer);
}

void SetFabric(EffectInputs& inputs, const Fabric& fabric) {
  using F = EffectFeature;
  Set(inputs, F::kRanks, Log2Of<kQuarter>(fabric.n_ranks));
  Set(inputs, F::kNodes, Log2Of<kQuarter>(fabric.n_nodes));
  Set(inputs, F::kIntraLatency, Log2Of<kEighth>(fabric.intra.latency_us * 1e3));
  Set(inputs, F::kIntraBandwidth, Log2Of<kEighth>(fabric.intra.bandwidth_gbps * 1e3));
  Set(inputs, F::kInterLatency, Log2Of<kEighth>(fabric.inter.latency_us * 1e3));
  Set(inputs, F::kInterBandwidth, Log2Of<kEighth>(fabric.inter.bandwidth_gbps * 1e3));
}

void SetCircumstances(EffectInputs& inputs, const EffectSubject& subject) {
  using F = EffectFeature;
  if (subject.exposed) {
    SetFlag(inputs, F::kExposedKnown);
    Set(inputs, F::kExposed, Fixed(*subject.exposed));
  }
  if (subject.slowness && subject.share) {
    SetFlag(inputs, F::kCircumstancesKnown);
    Set(inputs, F::kSlowness, Fixed(*subject.slowness / 4));
    Set(inputs, F::kShare, Fixed(*subject.share));
  }
  if (subject.memory != MemoryPressure::kUnknown)
    Set(inputs, F::kMemory, (1 + static_cast<int32_t>(subject.memory)) * kTokenOne / 4);
}

EffectFeature FlagOf(Algorithm algorithm) {
  if (algorithm == Algorithm::kTree) return EffectFeature::kTree;
  if (algorithm == Algorithm::kRing) return EffectFeature::kRing;
  return algorithm == Algorithm::kPat ? EffectFeature::kPat : EffectFeature::kOtherAlgorithm;
}

EffectFeature FlagOf(Protocol protocol) {
  if (protocol == Protocol::kLL) return EffectFeature::kLL;
  return protocol == Protocol::kLL128 ? EffectFeature::kLL128 : EffectFeature::kSimple;
}

EffectFeature FlagOf(ChannelCount channels) {
  if (channels == ChannelCount::kOne) return EffectFeature::kOneChannel;
  return channels == ChannelCount::kFew ? EffectFeature::kFewChannels : EffectFeature::kManyChannels;
}

}  // namespace

uint64_t EffectSchemaHash() {
  return XXH3_64bits(kSchema.data(), kSchema.size());
}

EffectInputs EffectFeaturesOf(const EffectSubject& subject) {
  EffectInputs inputs{};
  // The first inputs are the collectives in NCCL's order.
  for (size_t c = 0; c < kTunableCollectives; ++c)
    if ((subject.collectives >> c & 1) != 0) inputs[c] = kTokenOne;
  Set(inputs, EffectFeature::kBytes, Log2Of<kEighth>(static_cast<double>(subject.bytes)));
  SetFabric(inputs, subject.fabric);
  SetRole(inputs, subject.role);
  SetPhase(inputs, subject.phase);
  SetCircumstances(inputs, subject);
  SetFlag(inputs, FlagOf(subject.algorithm));
  SetFlag(inputs, FlagOf(subject.protocol));
  SetFlag(inputs, FlagOf(subject.channels));
  return inputs;
}

}  // namespace dynamiccl
