// SPDX-License-Identifier: Apache-2.0
#include "src/decision/decision_engine.h"

#include <algorithm>
#include <limits>

namespace dynamiccl {
namespace {

// NCCL's MAXCHANNELS since 2.25; the field that takes the answer is a signed byte.
constexpr int kMostChannels = 64;

bool IsCollnet(Algorithm algorithm) {
  return algorithm == Algorithm::kCollnetDirect || algorithm == Algorithm::kCollnetChain;
}

}  // namespace

ConfigMask ChoosableCells(const CostTable& table) {
  float best = std::numeric_limits<float>::infinity();
  for (const auto& row : table.microseconds) {
    for (const float cost : row) {
      if (cost >= 0) best = std::min(best, cost);
    }
  }
  ConfigMask cells;
  for (int a = 0; a < kAlgorithms; ++a) {
    for (int p = 0; p < kProtocols; ++p) {
      const float cost = table.microseconds[a][p];
      // NaN fails both comparisons.
      cells[static_cast<size_t>(a * kProtocols + p)] =
          cost >= 0 && (cost == best || cost < kPricedOut * best);
    }
  }
  return cells;
}

DecisionEngine::DecisionEngine(EngineOptions options) : options_(std::move(options)) {
  if (options_.policy) table_ = std::make_unique<DecisionTable>(options_.policy);
}

Decision DecisionEngine::Decide(const TunerQuestion& question, const ConfigMask& allowed) {
  // An entry computed while nothing was agreed would stay.
  if (static_cast<int>(question.collective) >= kTunableCollectives || allowed.none()) return {};
  Decision decision = Propose(question, allowed);
  if (decision.config.leaves_nccl_alone()) return {kLeaveNcclAlone, DecidedBy::kNccl, decision.use};
  // Left to NCCL, the call says what NCCL's choice takes.
  if (!allowed[ConfigIndex(decision.config.algorithm, decision.config.protocol)])
    return {kLeaveNcclAlone, DecidedBy::kNccl, CallUse::kDefaultSample};
  decision.config = WithLegalChannels(decision.config);
  return decision;
}

Decision DecisionEngine::Propose(const TunerQuestion& question, const ConfigMask& allowed) {
  if (options_.rules) {
    const RuleSubject subject{question.collective, question.bytes,      options_.n_nodes,
                              options_.n_ranks,    question.n_pipe_ops, question.role};
    if (const OverrideRule* rule = options_.rules->Match(subject))
      return {rule->config, DecidedBy::kRule, CallUse::kChoice};
  }
  if (!table_) return {};
  const TableKey key{question.collective, SizeClassOf(question.bytes), question.role};
  const CollectiveConfig choice = table_->At(key, allowed & NcclConfigs(question.collective));
  if (options_.plan) return Planned(key, choice, question);
  return {choice, DecidedBy::kPolicy, CallUse::kChoice};
}

Decision DecisionEngine::Planned(const TableKey& key, const CollectiveConfig& policy_choice,
                                 const TunerQuestion& question) const {
  if (!question.is_call)
    return {options_.plan->ChoiceOf(key, policy_choice), DecidedBy::kPolicy, CallUse::kChoice};
  const PlannedCall planned = options_.plan->At(key, policy_choice, question.call_number);
  return {planned.config, DecidedBy::kPolicy, planned.use};
}

CollectiveConfig DecisionEngine::WithLegalChannels(CollectiveConfig config) const {
  const int most = options_.max_channels > 0 ? std::min(options_.max_channels, kMostChannels) : kMostChannels;
  config.channels = static_cast<uint8_t>(std::min<int>(config.channels, most));
  if (options_.channels_are_pinned) config.channels = 0;
  // Up to 2.30 NCCL uses CollNet's number unchecked: without knowing the communicator's channels, leave it to
  // NCCL.
  if (options_.max_channels <= 0 && IsCollnet(config.algorithm)) config.channels = 0;
  return config;
}

}  // namespace dynamiccl
