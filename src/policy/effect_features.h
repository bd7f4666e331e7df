// SPDX-License-Identifier: Apache-2.0
// The inputs with which the config agent predicts how a config changes the time of a training step. They
// describe the calls that would use the config, the job's circumstances, the fabric and the config.
// Everything except the collectives, the number of ranks and nodes, and the config may be unknown; its inputs
// are then 0.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "src/collective/channel_count.h"
#include "src/collective/collective_config.h"
#include "src/collective/fabric.h"
#include "src/collective/role.h"

namespace dynamiccl {

// X(name, limit, meaning): the inputs in order, in fixed point with 12 fraction bits, clamped to |value| <=
// limit. Latencies are in ns, bandwidths in MB/s. The list is a schema: its text is hashed, and a policy that
// was trained on another schema is refused.
#define DYNAMICCL_EFFECT_FEATURES(X)                                                \
  X(kBroadcast, 4096, "1 if Broadcast uses the config")                             \
  X(kReduce, 4096, "1 if Reduce uses the config")                                   \
  X(kAllGather, 4096, "1 if AllGather uses the config")                             \
  X(kReduceScatter, 4096, "1 if ReduceScatter uses the config")                     \
  X(kAllReduce, 4096, "1 if AllReduce uses the config")                             \
  X(kBytes, 32767, "log2(bytes) / 8")                                               \
  X(kRanks, 32767, "log2(ranks) / 4")                                               \
  X(kNodes, 32767, "log2(nodes) / 4")                                               \
  X(kIntraLatency, 32767, "log2(latency inside a node) / 8")                        \
  X(kIntraBandwidth, 32767, "log2(bandwidth inside a node) / 8")                    \
  X(kInterLatency, 32767, "log2(latency between nodes) / 8")                        \
  X(kInterBandwidth, 32767, "log2(bandwidth between nodes) / 8")                    \
  X(kParameterGather, 4096, "1 for role parameter_gather")                          \
  X(kGradientReduce, 4096, "1 for role gradient_reduce")                            \
  X(kPostStepGather, 4096, "1 for role post_step_gather")                           \
  X(kActivation, 4096, "1 for role activation")                                     \
  X(kScalar, 4096, "1 for role scalar")                                             \
  X(kBackwardGather, 4096, "1 for role backward_gather")                            \
  X(kForward, 4096, "1 for phase forward")                                          \
  X(kBackward, 4096, "1 for phase backward")                                        \
  X(kOptimizer, 4096, "1 for phase optimizer")                                      \
  X(kExposedKnown, 4096, "1 if the exposed share is known")                         \
  X(kExposed, 4096, "share of the calls' time for which the program waits")         \
  X(kCircumstancesKnown, 4096, "1 if slowness and share are known")                 \
  X(kSlowness, 32767, "log2(time of calls / cost model's) / 4, with NCCL's choice") \
  X(kShare, 32767, "time of a step's calls / time of the step, with NCCL's choice") \
  X(kMemory, 4096, "memory pressure: low 1/4, medium 2/4, high 3/4")                \
  X(kTree, 4096, "1 for Tree")                                                      \
  X(kRing, 4096, "1 for Ring")                                                      \
  X(kPat, 4096, "1 for PAT")                                                        \
  X(kOtherAlgorithm, 4096, "1 for any other algorithm")                             \
  X(kLL, 4096, "1 for LL")                                                          \
  X(kLL128, 4096, "1 for LL128")                                                    \
  X(kSimple, 4096, "1 for Simple")                                                  \
  X(kOneChannel, 4096, "1 for one channel")                                         \
  X(kFewChannels, 4096, "1 for up to half of the channels")                         \
  X(kManyChannels, 4096, "1 for more channels")

enum class EffectFeature : uint8_t {
#define DYNAMICCL_EFFECT_FEATURE(name, limit, meaning) name,
  DYNAMICCL_EFFECT_FEATURES(DYNAMICCL_EFFECT_FEATURE)
#undef DYNAMICCL_EFFECT_FEATURE
};

// Largest magnitude of each input, by EffectFeature.
inline constexpr int16_t kEffectLimits[] = {
#define DYNAMICCL_EFFECT_FEATURE(name, limit, meaning) limit,
    DYNAMICCL_EFFECT_FEATURES(DYNAMICCL_EFFECT_FEATURE)
#undef DYNAMICCL_EFFECT_FEATURE
};
inline constexpr int kEffectFeatures = sizeof(kEffectLimits) / sizeof(kEffectLimits[0]);
// Inputs of the networks: the features, then zeros up to whole vector registers.
inline constexpr int kEffectInputs = 48;
static_assert(kEffectFeatures <= kEffectInputs);

using EffectInputs = std::array<int16_t, kEffectInputs>;

// Returns the XXH3 hash of the schema's canonical text. Policy files that predict effects carry it.
uint64_t EffectSchemaHash();

// Asks what a config does to a step. The meaning and unit of each member are those of MeasuredEffect
// (traces/format/measurement.h), from which the agent learns.
struct EffectSubject {
  uint8_t collectives = 0;
  uint64_t bytes = 0;
  Role role = Role::kUnknown;
  Phase phase = Phase::kUnknown;
  MemoryPressure memory = MemoryPressure::kUnknown;
  std::optional<double> exposed;
  std::optional<double> slowness;
  std::optional<double> share;
  Fabric fabric;  // links of zero bandwidth are unknown
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  ChannelCount channels = ChannelCount::kOne;
};

// Returns the inputs for a subject. Any thread.
EffectInputs EffectFeaturesOf(const EffectSubject& subject);

}  // namespace dynamiccl
