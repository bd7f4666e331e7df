// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/simulated_experiments.h"

#include <algorithm>

#include "src/collective/legal_configs.h"
#include "src/decision/guard/planned_table.h"

namespace dynamiccl::testing {
namespace {

// So many requests in a thousand come with a new measurement of the level of memory.
constexpr int kMemoryChanges = 50;
// Length of a step by a rank's own clock, under kArmsByOwnClock.
constexpr int64_t kOwnStepNs = 10'000'000;

std::shared_ptr<const OverrideRules> RulesByMemory() {
  static const auto rules = [] {
    auto parsed = OverrideRules::Parse(
        "version = 3\n[[rule]]\ncollective = \"allgather\"\nmemory = \"high\"\nconfig = \"ring/ll/1\"\n"
        "[[rule]]\ncollective = \"allreduce\"\nmemory = \"medium\"\nconfig = \"tree/simple/2\"\n",
        "simulated.toml");
    if (!parsed) std::abort();
    return std::make_shared<const OverrideRules>(std::move(*parsed));
  }();
  return rules;
}

// Returns a number of 31 bits that stands for the decision.
uint64_t CodeOf(uint32_t table, const Decision& decision, bool timed) {
  const CollectiveConfig& config = decision.config;
  return NumberFrom(table,
                    static_cast<uint64_t>(config.algorithm) << 16 |
                        static_cast<uint64_t>(config.protocol) << 8 | config.channels,
                    static_cast<uint64_t>(decision.use), timed ? 1 : 0) >>
         33;
}

}  // namespace

SimulatedExperiments::SimulatedExperiments(uint64_t seed, uint64_t decisions, ExperimentRule rule)
    : SimulatedCommunicator(seed, decisions),
      rule_(rule),
      program_(seed),
      memory_(ranks_.size()),
      guard_(
          {0.005, 0.04, true, [this](const EffectQuestion& asked) { return program_.Expected(asked); }, {}},
          [this](const TableKey& key, Regime) { return Knowledge(key); }),
      timed_(ReportersOf(faults_.n_ranks)) {
  for (Rank& rank : ranks_) {
    tables_.push_back(std::make_unique<SwitchableTables>(
        NewEngine({}, false), [this](const std::shared_ptr<const Policy>&, std::span<const std::byte> plan) {
          return NewEngine(plan, true);
        }));
    rank.gate = &tables_.back()->gate();
    rank.member = SwitchMember(*rank.gate);
  }
  (void)NextVersion();  // the ranks have attested the first version
}

std::shared_ptr<DecisionEngine> SimulatedExperiments::NewEngine(std::span<const std::byte> plan,
                                                                bool has_plan) const {
  EngineOptions options;
  options.n_ranks = faults_.n_ranks;
  options.max_channels = 16;
  options.rules = RulesByMemory();
  options.policy = [this](const TableKey& key, const ConfigMask&) { return program_.PolicyChoice(key); };
  std::optional<TablePlan> decoded = has_plan ? DecodePlan(plan) : TablePlan{};
  if (!decoded) return nullptr;
  options.plan = std::make_shared<PlannedTable>(std::move(*decoded));
  return std::make_shared<DecisionEngine>(std::move(options));
}

KeyKnowledge SimulatedExperiments::Knowledge(const TableKey& key) const {
  const DecisionKey of_size{key.collective, LowerBound(key.size_class)};
  return {program_.PolicyChoice(key), program_.Candidates(key), program_.Confirmed(key),
          static_cast<double>(program_.TransferNs(of_size, kLeaveNcclAlone)) / 2};
}

// ---- the issuing threads ----
uint64_t SimulatedExperiments::DecisionOf(Rank& rank) {
  SwitchableTables& tables = TablesOf(rank);
  tables.Enter(rank.next_call);  // the gate has let the call pass
  DecisionKey key = program_.CallAt(rank.next_call);
  key.role = program_.RoleOf(key, rank.structure.Read(now_));
  key.memory = rule_ == ExperimentRule::kOwnMemory ? memory_[static_cast<size_t>(rank.index)].level()
                                                   : tables.current().memory;
  bool timed = false;
  const Decision decision = Answer(rank, key, timed);
  Note(rank, key, decision, timed);
  if (rank.index == 0) Feed(key, decision, timed);
  return uint64_t{rank.gate->version()} << 32 | CodeOf(tables.current().version, decision, timed);
}

Decision SimulatedExperiments::Answer(Rank& rank, const DecisionKey& key, bool& timed) {
  DecisionEngine* engine = TablesOf(rank).current().engine;
  if (rule_ == ExperimentRule::kLeaderUsesProposals && rank.index == 0 && early_) engine = early_.get();
  if (engine == nullptr) return {};
  const TableKey entry{key.collective, SizeClassOf(key.bytes), key.role};
  timed = engine->plan()->TimesNext(entry, key.call_number);
  Decision decision = engine->Decide(key, NcclConfigs(key.collective));
  const bool pauses = rule_ == ExperimentRule::kArmsByOwnClock && now_ / kOwnStepNs % 2 == 0;
  if (decision.use == CallUse::kTrial && pauses)
    decision.config = engine->plan()->ChoiceOf(entry, decision.policy_choice);
  return decision;
}

void SimulatedExperiments::Note(const Rank& rank, const DecisionKey& key, const Decision& decision,
                                bool timed) {
  const bool is_trial = decision.use == CallUse::kTrial;
  const DecisionEngine* const engine = TablesOf(rank).current().engine;
  counts_.trials += is_trial ? 1 : 0;
  counts_.leading += is_trial && engine != nullptr && engine->plan()->plan().common_pause > 0 ? 1 : 0;
  const int reporter = ReporterOf(rank.index, faults_.n_ranks);
  if (!timed || reporter < 0) return;
  const int64_t ns = program_.TransferNs(key, decision.config);
  AddReport(reporter, {key.call_number, key.collective, ns + random_.Waiting(ns / 16 + 1)});
}

void SimulatedExperiments::Feed(const DecisionKey& key, const Decision& decision, bool timed) {
  const VersionedTable& table = TablesOf(ranks_[0]).current();
  DecidedCall call;
  call.number = key.call_number;
  call.key = {key.collective, SizeClassOf(key.bytes), key.role};
  call.use = decision.use;
  call.config = decision.config;
  call.policy_choice = decision.policy_choice;
  call.allowed = NcclConfigs(key.collective);
  call.version = table.version;
  call.timed = timed;
  call.stamped = table.engine != nullptr && BeginsStep(table.engine->plan()->plan(), call.number);
  call.structure_changes = static_cast<uint32_t>(call.number / 1000);
  call.issued_ns = now_;
  feed_.Push(call);
  if (call.stamped) AddReport(-1, {call.number, key.collective, 0, device_ns_});
  const int64_t ns = program_.computed_ns() + program_.TransferNs(key, decision.config);
  device_ns_ += ns + random_.Waiting(ns / 64 + 1);
}

void SimulatedExperiments::AddReport(int reporter, const CallTime& time) {
  if (random_.Chance(faults_.lost)) return;
  reports_.push_back({now_ + time.ns + random_.Waiting(faults_.delay_ns), reporter, time});
  std::push_heap(reports_.begin(), reports_.end(), DueLater);
}

// ---- the leader's control thread ----
void SimulatedExperiments::TakeReports() {
  while (!reports_.empty() && reports_.front().due_ns <= now_) {
    std::pop_heap(reports_.begin(), reports_.end(), DueLater);
    const Report report = reports_.back();
    reports_.pop_back();
    timed_.AddTimes(report.reporter, std::span(&report.time, 1));
  }
}

void SimulatedExperiments::LeaderWorks() {
  DecidedCall decided;
  while (feed_.Pop(decided)) timed_.Add(decided);
  TakeReports();
  while (const auto call = timed_.Next(now_)) guard_.TakeCall(*call);
  ForgetDropped();
  if (!calm_) Propose();
}

void SimulatedExperiments::Propose() {
  auto proposal = guard_.Tick(now_);
  if (!proposal) return;
  const uint32_t version = NextVersion();
  Offered& offered = offers_[version];
  offered.plan = EncodePlan(proposal->plan);
  if (rule_ == ExperimentRule::kLeaderUsesProposals) early_ = NewEngine(offered.plan, true);
  const auto reason = proposal->revocation ? SwitchReason::kRevocation : SwitchReason::kAdoption;
  pending_.emplace(version, std::move(*proposal));
  if (RequestOf(version, reason)) return;
  pending_.reset();
  guard_.Failed(now_);
}

// The leader drops a proposal without an attempt when a more urgent request replaces it.
void SimulatedExperiments::ForgetDropped() {
  if (!pending_ || leader_.busy()) return;
  pending_.reset();
  guard_.Failed(now_);
}

void SimulatedExperiments::TakeOutcome(const SwitchOutcome& outcome) {
  const bool committed = outcome.end == SwitchOutcome::End::kCommitted;
  if (committed && outcome.version == memory_version_) ++counts_.memory_levels;
  if (!pending_ || outcome.version != pending_->first) return;
  if (committed) {
    CountVersion(pending_->second);
    guard_.Committed(outcome.version, now_);
  } else if (outcome.request_ended) {
    guard_.Failed(now_);
  } else {
    return;
  }
  pending_.reset();
}

void SimulatedExperiments::CountVersion(const Proposal& proposal) {
  const std::vector<CollectiveConfig>& common = proposal.plan.common;
  const bool leads = proposal.plan.common_pause > 0;
  counts_.searches += proposal.reason == GuardReason::kSearch ? 1 : 0;
  counts_.adoptions += proposal.reason == GuardReason::kAdopt ? 1 : 0;
  counts_.revocations += proposal.revocation ? 1 : 0;
  counts_.challenges += leads && common.front() != common.back() ? 1 : 0;
  const auto& belief = guard_.belief();
  counts_.beliefs += leads && belief && belief->config == common.front() ? 1 : 0;
}

// Changes the free memory of all ranks' devices. The ranks then agree on the level of the leader's device.
void SimulatedExperiments::Request() {
  if (!random_.Chance(kMemoryChanges)) return;
  for (MemoryLevel& level : memory_) level.Take(random_.Below(100), 100);
  const MemoryPressure now = memory_[0].level();
  if (now == leader_memory_) return;
  leader_memory_ = now;
  memory_version_ = NextVersion();
  offers_[*memory_version_] = {true, now, {}};
  (void)RequestOf(*memory_version_, SwitchReason::kOperator);
}

// ---- every rank's control thread ----
bool SimulatedExperiments::Offer(Rank& rank, uint32_t version) {
  const auto offered = offers_.find(version);
  if (offered == offers_.end()) return TablesOf(rank).OfferNcclsChoice(version);
  const Offered& brings = offered->second;
  if (!brings.brings_values) return TablesOf(rank).Offer(version, nullptr, brings.plan);
  return TablesOf(rank).OfferValues(
      version, {{std::string(kMemoryPressureValue), static_cast<int64_t>(brings.memory)}});
}

void SimulatedExperiments::Committed(Rank& rank) {
  TablesOf(rank).Committed(rank.gate->next_version());
}

namespace {

template <ExperimentRule rule>
class LifeUnder : public SimulatedExperiments {
 public:
  LifeUnder(uint64_t seed, uint64_t decisions) : SimulatedExperiments(seed, decisions, rule) {}
};

template <ExperimentRule rule>
SimulationResult<SimulationCounts> Run(const Simulation& simulation) {
  return LiveThrough<LifeUnder<rule>, SimulationCounts>(simulation);
}

constexpr Protocol<SimulationCounts> kProtocols[] = {
    {"agreed", "what ships", "", Run<ExperimentRule::kAgreed>},
    {"early", "the leader's rank uses a plan as soon as it is proposed", kDivergent,
     Run<ExperimentRule::kLeaderUsesProposals>},
    {"own-clock", "a rank's own clock says which steps use arms", kDivergent,
     Run<ExperimentRule::kArmsByOwnClock>},
    {"own-memory", "rules read the rank's own level of memory", kDivergent, Run<ExperimentRule::kOwnMemory>},
};

}  // namespace

std::span<const Protocol<SimulationCounts>> ExperimentProtocols() {
  return kProtocols;
}

}  // namespace dynamiccl::testing
