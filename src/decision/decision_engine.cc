// SPDX-License-Identifier: Apache-2.0
// Decide asks the rules, the plan and the policy in turn (Propose), checks that NCCL offers the proposed
// config, and limits its channels. ChoosableCells reads the whole cost table for every question, so it works
// on four cells at a time.
#include "src/decision/decision_engine.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace dynamiccl {
namespace {

// Returns who decided a call of a plan, for logs and traces.
DecidedBy DeciderOf(const PlannedCall& planned, const CollectiveConfig& policy_choice) {
  switch (planned.use) {
    case CallUse::kTrial:
      return DecidedBy::kTrial;
    case CallUse::kDefaultSample:
      return DecidedBy::kSample;
    case CallUse::kChoice:
      break;
  }
  return planned.config == policy_choice ? DecidedBy::kPolicy : DecidedBy::kGuard;
}

bool IsCollnet(Algorithm algorithm) {
  return algorithm == Algorithm::kCollnetDirect || algorithm == Algorithm::kCollnetChain;
}

// The cost table is read four cells at a time, in vector registers. It is padded to whole vectors with cells
// that are not possible.
constexpr int kLanes = 4;
constexpr int kCells = kAlgorithms * kProtocols;
constexpr int kVectors = (kCells + kLanes - 1) / kLanes;
typedef float Costs __attribute__((vector_size(kLanes * sizeof(float))));
typedef int32_t Cells __attribute__((vector_size(kLanes * sizeof(int32_t))));
static_assert(kCells < 31);

// Returns the ConfigMask bits of a vector's four cells. Vector 0 has the first four cells.
Cells BitsOf(int vector) {
  return Cells{1, 2, 4, 8} << (vector * kLanes);
}

// Returns the least cost of a possible cell; infinity if no cell is possible.
float Least(const Costs (&costs)[kVectors]) {
  const Costs none = std::numeric_limits<float>::infinity() - Costs{};
  Costs least = none;
  for (const Costs& cost : costs) {
    const Costs possible = cost >= 0 ? cost : none;
    least = possible < least ? possible : least;
  }
  return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
}

}  // namespace

[[gnu::hot]] ConfigMask ChoosableCells(const CostTable& table) {
  Costs costs[kVectors];
  costs[kVectors - 1] = -1 - Costs{};
  static_assert(sizeof(table.microseconds) == kCells * sizeof(float));
  std::memcpy(costs, &table.microseconds, sizeof(table.microseconds));
  const float best = Least(costs), limit = kPricedOut * best;
  Cells cells{};
  for (int i = 0; i < kVectors; ++i) {
    // A cost of NaN fails all comparisons, so its cell is not possible.
    cells |= (costs[i] >= 0) & ((costs[i] == best) | (costs[i] < limit)) & BitsOf(i);
  }
  return ConfigMask(static_cast<unsigned>(cells[0] | cells[1] | cells[2] | cells[3]));
}

CollectiveConfig CheapestCell(const CostTable& table) {
  CollectiveConfig cheapest = kLeaveNcclAlone;
  float least = std::numeric_limits<float>::infinity();
  for (int cell = 0; cell < kCells; ++cell) {
    const float cost = table.microseconds[cell / kProtocols][cell % kProtocols];
    if (!(cost >= 0 && cost < least)) continue;
    least = cost;
    cheapest = {static_cast<Algorithm>(cell / kProtocols), static_cast<Protocol>(cell % kProtocols), 0};
  }
  return cheapest;
}

DecisionEngine::DecisionEngine(EngineOptions options) : options_(std::move(options)) {
  if (options_.policy) table_ = std::make_unique<DecisionTable>(options_.policy);
}

[[gnu::hot]] Decision DecisionEngine::Decide(const DecisionKey& key, const ConfigMask& allowed) {
  // This returns before a table entry is computed. An entry computed with an empty mask would stay for good.
  if (static_cast<int>(key.collective) >= kTunableCollectives || allowed.none()) return {};
  Decision decision = Propose(key, allowed);
  if (options_.turns) decision.turn = options_.turns->turn();
  const CollectiveConfig config = decision.asked_for;
  if (!config.leaves_nccl_alone() && allowed[ConfigIndex(config.algorithm, config.protocol)]) {
    decision.config = WithLegalChannels(config);
    return decision;
  }
  // A call that is left to NCCL serves as a sample of NCCL's choice.
  if (!config.leaves_nccl_alone()) decision.use = CallUse::kDefaultSample;
  decision.asked_for = kLeaveNcclAlone;
  decision.chunk_bytes = 0;
  if (decision.decided_by != DecidedBy::kSample) decision.decided_by = DecidedBy::kNccl;
  return decision;
}

[[gnu::hot]] Decision DecisionEngine::Propose(const DecisionKey& key, const ConfigMask& allowed) {
  if (options_.rules || options_.turns) {
    const RuleSubject subject{key.collective, key.bytes, options_.n_nodes, options_.n_ranks, key.n_pipe_ops,
                              key.role,       key.phase, key.stage,        key.memory};
    if (const OverrideRule* rule = RulesFor(subject, key).Match(subject))
      return {{}, DecidedBy::kRule, CallUse::kChoice, rule->config, {}, rule->chunk_bytes};
  }
  if (!table_) return {};
  const TableKey entry{key.collective, SizeClassOf(key.bytes), key.role};
  const ConfigMask offered = allowed & NcclConfigs(key.collective);
  // The first call with a key makes its entry. Possibly only some ranks simulate a group, so the simulation
  // must not make an entry: other ranks would make theirs at a later call, for which NCCL may offer something
  // else.
  const CollectiveConfig choice = key.is_call ? table_->Lookup(entry, offered) : table_->Peek(entry, offered);
  if (options_.plan) return Planned(entry, choice, key);
  return {{}, DecidedBy::kPolicy, CallUse::kChoice, choice, choice, 0};
}

// The end of a simulated group (ncclGroupSimulateEnd) is no part of a training step, so it must not advance
// the turns.
const OverrideRules& DecisionEngine::RulesFor(const RuleSubject& subject, const DecisionKey& key) {
  if (!options_.turns) return *options_.rules;
  return key.is_call ? options_.turns->RulesAt(subject, key.call_number) : options_.turns->CurrentRules();
}

Decision DecisionEngine::Planned(const TableKey& entry, const CollectiveConfig& policy_choice,
                                 const DecisionKey& key) const {
  const PlannedCall planned =
      key.is_call ? options_.plan->At(entry, policy_choice, key.call_number)
                  : PlannedCall{options_.plan->ChoiceOf(entry, policy_choice), CallUse::kChoice};
  return {{}, DeciderOf(planned, policy_choice), planned.use, planned.config, policy_choice, 0};
}

CollectiveConfig DecisionEngine::WithLegalChannels(CollectiveConfig config) const {
  const int most =
      options_.max_channels > 0 ? std::min(options_.max_channels, kMaxNcclChannels) : kMaxNcclChannels;
  config.channels = static_cast<uint8_t>(std::min<int>(config.channels, most));
  if (options_.channels_are_pinned) config.channels = 0;
  // NCCL up to 2.30 does not check the number of channels that it gets for CollNet. If the communicator's
  // channels are unknown, NCCL therefore chooses the number.
  if (options_.max_channels <= 0 && IsCollnet(config.algorithm)) config.channels = 0;
  return config;
}

}  // namespace dynamiccl
