// SPDX-License-Identifier: Apache-2.0
// Computes the config agent's inputs. Logarithms are computed in integers (fixed_log2.h). The only doubles
// come from the cost model, which computes the same bits on all machines.
#include "src/policy/config_features.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "src/collective/size_class.h"
#include "src/fingerprint/fixed_log2.h"

namespace dynamiccl {
namespace {

constexpr std::string_view kSchema = "dynamiccl config features 1, int16, 12 fraction bits\n"
#define DYNAMICCL_CONFIG_FEATURE(name, limit, meaning) #name " " #limit " " meaning "\n"
    DYNAMICCL_CONTEXT_FEATURES(DYNAMICCL_CONFIG_FEATURE) DYNAMICCL_ACTION_FEATURES(DYNAMICCL_CONFIG_FEATURE)
#undef DYNAMICCL_CONFIG_FEATURE
        "actions: algorithm, protocol, channels 1 2 4 ... and the communicator's; the first of equals\n";

// The integer that stands for log2(x) with this many fraction bits also stands for log2(x) / 8 with 12
// fraction bits. The next constant does the same for log2(x) / 4.
constexpr int kEighth = 9;
constexpr int kQuarter = 10;

void Set(ConfigInputs& inputs, ConfigFeature feature, int32_t value) {
  const auto index = static_cast<size_t>(feature);
  const int32_t limit = kConfigLimits[index];
  inputs[index] = static_cast<int16_t>(std::clamp(value, -limit, limit));
}

void SetFlag(ConfigInputs& inputs, ConfigFeature feature) {
  Set(inputs, feature, 1 << 12);
}

// Converting a double to an integer truncates exactly on every machine; the bounds keep the conversion
// defined.
uint64_t Whole(double value) {
  return value >= 1 ? static_cast<uint64_t>(std::min(value, 1e18)) : 1;
}
uint64_t Positive(int32_t value) {
  return static_cast<uint64_t>(std::max(value, 1));
}

ConfigFeature AlgorithmFeature(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kTree:
      return ConfigFeature::kTree;
    case Algorithm::kRing:
      return ConfigFeature::kRing;
    case Algorithm::kPat:
      return ConfigFeature::kPat;
    default:
      return ConfigFeature::kOtherAlgorithm;
  }
}

ConfigFeature ProtocolFeature(Protocol protocol) {
  if (protocol == Protocol::kLL) return ConfigFeature::kLL;
  return protocol == Protocol::kLL128 ? ConfigFeature::kLL128 : ConfigFeature::kSimple;
}

}  // namespace

uint64_t ConfigSchemaHash() {
  return XXH3_64bits(kSchema.data(), kSchema.size());
}

int32_t Log2Cost(double microseconds) {
  return FixedLog2<16>(Whole(microseconds * 1e6));
}

ConfigQuestion QuestionOfJobs(ConfigQuestion question) {
  question.bytes = LowerBound(SizeClassOf(question.bytes));
  return question;
}

ConfigContext::ConfigContext(const CostModelInput& input, const ConfigQuestion& question)
    : input_(input), question_(question) {
  question_.allowed &= NcclConfigs(question.collective);
  if (question_.allowed.any()) {
    const CostTable table =
        EstimateCosts(input_, question_.collective, question_.bytes, 1, question_.allowed);
    default_ = CheapestConfig(table);
    if (!default_.leaves_nccl_alone())
      best_prior_ = Log2Cost(table.at(default_.algorithm, default_.protocol));
    default_ = Price(default_).config;
  }
  FillContextFeatures();
}

void ConfigContext::FillContextFeatures() {
  using F = ConfigFeature;
  const Fabric& fabric = input_.fabric;
  const LinkParameters& inter = fabric.n_nodes > 1 ? fabric.inter : fabric.intra;
  const int32_t ranks = FixedLog2<kQuarter>(Positive(fabric.n_ranks));
  const int32_t nodes = FixedLog2<kQuarter>(Positive(fabric.n_nodes));
  const auto collective = static_cast<int>(question_.collective);
  if (collective < kTunableCollectives) features_[static_cast<size_t>(collective)] = 1 << 12;
  Set(features_, F::kBytes, FixedLog2<kEighth>(question_.bytes));
  Set(features_, F::kRanks, ranks);
  Set(features_, F::kNodes, nodes);
  Set(features_, F::kRanksPerNode, ranks - nodes);
  Set(features_, F::kIntraLatency, FixedLog2<kEighth>(Whole(fabric.intra.latency_us * 1e3)));
  Set(features_, F::kIntraBandwidth, FixedLog2<kEighth>(Whole(fabric.intra.bandwidth_gbps * 1e3)));
  Set(features_, F::kInterLatency, FixedLog2<kEighth>(Whole(inter.latency_us * 1e3)));
  Set(features_, F::kInterBandwidth, FixedLog2<kEighth>(Whole(inter.bandwidth_gbps * 1e3)));
  Set(features_, F::kMaxChannels, FixedLog2<kQuarter>(Positive(fabric.max_channels)));
}

ConfigAction ConfigContext::Price(CollectiveConfig config) const {
  if (config.leaves_nccl_alone()) return {kLeaveNcclAlone, 0};
  if (config.channels == 0) {
    config.channels = static_cast<uint8_t>(std::clamp(
        DefaultChannels(input_, question_.collective, question_.bytes, config.algorithm, config.protocol), 1,
        255));
  }
  const double cost = EstimateCost(input_, question_.collective, question_.bytes, config);
  return {config, cost > 0 ? Log2Cost(cost) : 0};
}

std::vector<ConfigAction> ConfigContext::Actions() const {
  std::vector<ConfigAction> actions;
  for (const CollectiveConfig& config : EnumerateConfigs(question_.allowed, input_.fabric.max_channels)) {
    const ConfigAction action = Price(config);
    if (action.prior > 0) actions.push_back(action);
  }
  return actions;
}

ConfigInputs ConfigContext::Features(const ConfigAction& action) const {
  using F = ConfigFeature;
  const CollectiveConfig& config = action.config;
  ConfigInputs inputs = features_;
  SetFlag(inputs, AlgorithmFeature(config.algorithm));
  SetFlag(inputs, ProtocolFeature(config.protocol));
  const int32_t channels = FixedLog2<kQuarter>(Positive(config.channels));
  const CollectiveConfig unset{config.algorithm, config.protocol, 0};
  const int32_t default_channels = FixedLog2<kQuarter>(Positive(Price(unset).config.channels));
  Set(inputs, F::kChannels, channels);
  Set(inputs, F::kChannelsOverDefault, channels - default_channels);
  // Converts log2 of picoseconds with 16 fraction bits to log2 of nanoseconds / 8 with 12 fraction bits. 2^10
  // stands for 1000; the difference of 2.3 % is a constant shift, which training compensates.
  Set(inputs, F::kPrior, (action.prior - (10 << 16)) >> (16 - kEighth));
  Set(inputs, F::kPriorOverBest, (action.prior - best_prior_) >> (16 - kQuarter));
  const uint64_t share = question_.bytes / Positive(input_.fabric.n_ranks) / Positive(config.channels);
  Set(inputs, F::kChannelBytes, FixedLog2<kEighth>(share));
  return inputs;
}

}  // namespace dynamiccl
