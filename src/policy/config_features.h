// SPDX-License-Identifier: Apache-2.0
// The inputs of the config agent for one (context, action). They are computed from values that are equal on
// all ranks, in integers, by the same code in training and in jobs.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "src/collective/legal_configs.h"
#include "src/cost_model/cost_model.h"

namespace dynamiccl {

// X(name, limit, meaning): the features in order, in fixed point with 12 fraction bits, clamped to |value| <=
// limit. The context features describe the call and the fabric, the action features the configuration in
// question. Latencies are in ns, bandwidths in MB/s, costs in ns. The list is a schema: its text is hashed,
// and a policy that was trained on another schema is refused.
#define DYNAMICCL_CONTEXT_FEATURES(X)                                                          \
  X(kIsBroadcast, 4096, "1 for Broadcast")                                                     \
  X(kIsReduce, 4096, "1 for Reduce")                                                           \
  X(kIsAllGather, 4096, "1 for AllGather")                                                     \
  X(kIsReduceScatter, 4096, "1 for ReduceScatter")                                             \
  X(kIsAllReduce, 4096, "1 for AllReduce")                                                     \
  X(kBytes, 32767, "log2(bytes) / 8")                                                          \
  X(kRanks, 32767, "log2(ranks) / 4")                                                          \
  X(kNodes, 32767, "log2(nodes) / 4")                                                          \
  X(kRanksPerNode, 32767, "log2(ranks) / 4 - log2(nodes) / 4")                                 \
  X(kIntraLatency, 32767, "log2(latency inside a node) / 8")                                   \
  X(kIntraBandwidth, 32767, "log2(bandwidth inside a node) / 8")                               \
  X(kInterLatency, 32767, "log2(latency between nodes) / 8; inside a node where there is one") \
  X(kInterBandwidth, 32767, "log2(bandwidth between nodes) / 8; likewise")                     \
  X(kMaxChannels, 32767, "log2(channels of the communicator) / 4")
#define DYNAMICCL_ACTION_FEATURES(X)                                               \
  X(kTree, 4096, "1 for Tree")                                                     \
  X(kRing, 4096, "1 for Ring")                                                     \
  X(kPat, 4096, "1 for PAT")                                                       \
  X(kOtherAlgorithm, 4096, "1 for any other algorithm")                            \
  X(kLL, 4096, "1 for LL")                                                         \
  X(kLL128, 4096, "1 for LL128")                                                   \
  X(kSimple, 4096, "1 for Simple")                                                 \
  X(kChannels, 32767, "log2(channels) / 4")                                        \
  X(kChannelsOverDefault, 16384, "log2(channels / NCCL's channels) / 4")           \
  X(kPrior, 32767, "log2(cost model's cost) / 8")                                  \
  X(kPriorOverBest, 32767, "log2(cost / cheapest cost of the table) / 4, clamped") \
  X(kChannelBytes, 32767, "log2(bytes / ranks / channels) / 8")

enum class ConfigFeature : uint8_t {
#define DYNAMICCL_CONFIG_FEATURE(name, limit, meaning) name,
  DYNAMICCL_CONTEXT_FEATURES(DYNAMICCL_CONFIG_FEATURE) DYNAMICCL_ACTION_FEATURES(DYNAMICCL_CONFIG_FEATURE)
#undef DYNAMICCL_CONFIG_FEATURE
};

// Largest magnitude of each feature, by ConfigFeature.
inline constexpr int16_t kConfigLimits[] = {
#define DYNAMICCL_CONFIG_FEATURE(name, limit, meaning) limit,
    DYNAMICCL_CONTEXT_FEATURES(DYNAMICCL_CONFIG_FEATURE) DYNAMICCL_ACTION_FEATURES(DYNAMICCL_CONFIG_FEATURE)
#undef DYNAMICCL_CONFIG_FEATURE
};
inline constexpr int kConfigFeatures = sizeof(kConfigLimits) / sizeof(kConfigLimits[0]);
// Context features come first; the action's features begin here.
inline constexpr int kContextFeatures = static_cast<int>(ConfigFeature::kTree);
// Inputs of the networks: the features, then zeros up to whole vector registers.
inline constexpr int kConfigInputs = 32;
static_assert(kConfigFeatures <= kConfigInputs);

using ConfigInputs = std::array<int16_t, kConfigInputs>;

// Returns the XXH3 hash of the schema's canonical text. Policy files carry it.
uint64_t ConfigSchemaHash();

// Returns log2 of the time in picoseconds, with 16 fraction bits. `microseconds` must be positive.
int32_t Log2Cost(double microseconds);

// One question to the config agent; all fields are equal on all ranks. `allowed` is what NCCL offers on the
// communicator. Pairs of algorithm and protocol for which NCCL has no kernel are ignored.
struct ConfigQuestion {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;  // NCCL's total
  ConfigMask allowed;
};

// Returns the question that a job asks about calls of this size. Jobs decide by size class, so they ask about
// the least size of the class.
ConfigQuestion QuestionOfJobs(ConfigQuestion question);

// A configuration as a possible answer, with its predicted time.
struct ConfigAction {
  CollectiveConfig config;
  int32_t prior = 0;  // Log2Cost of the cost model's estimate
};

// The context of one question on one fabric. The constructor computes everything that does not depend on the
// action. A plain value: its user owns it, and any thread may call const functions.
class ConfigContext {
 public:
  ConfigContext(const CostModelInput& input, const ConfigQuestion& question);

  // Returns the configuration that NCCL is expected to use, with its number of channels; kLeaveNcclAlone if
  // nothing is possible.
  const CollectiveConfig& default_config() const { return default_; }
  // Returns every allowed configuration that the cost model can price. If two have equal predictions the
  // earlier one is chosen, so their order matters.
  std::vector<ConfigAction> Actions() const;
  // Returns the action for a configuration. Channels 0 means NCCL's number. An impossible configuration gets
  // prior 0.
  ConfigAction Price(CollectiveConfig config) const;
  // Returns the complete inputs for an action.
  ConfigInputs Features(const ConfigAction& action) const;
  // Returns the context features alone; the action's features are zero.
  const ConfigInputs& features() const { return features_; }

 private:
  void FillContextFeatures();

  CostModelInput input_;
  ConfigQuestion question_;
  CollectiveConfig default_;
  int32_t best_prior_ = 0;
  ConfigInputs features_{};
};

}  // namespace dynamiccl
