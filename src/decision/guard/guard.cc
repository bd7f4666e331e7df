// SPDX-License-Identifier: Apache-2.0
// The guard's rules. guard.h outlines the life of a key; docs/guard.md gives the promises and the words.
#include "src/decision/guard/guard.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/decision/guard/carried_choices.h"
#include "src/decision/guard/table_plan.h"

namespace dynamiccl {
namespace {

// Timed calls of a key before its trials begin: NCCL's level must be known to say what 3x is.
constexpr uint32_t kTimesBeforeTrials = 16;
// The first key that could begin trials waits 1 s for other keys, so that one version begins many searches.
constexpr int64_t kGatherTrialsNs = 1'000'000'000;
// A search ends when the keys still being tried have less than a quarter of the time of the decided ones.
constexpr double kMostlyDecided = 4;
// Entries of a plan at most before carried ones stop: more would crowd out trials (plan_bytes.h).
constexpr size_t kMaxKeysBesideCarried = 300;
// Calls between two looks at the pace of trials: more versions would cost more than they bring.
constexpr uint64_t kPaceEveryCalls = 256;
// Pairs from which on a choice's gain counts as saved.
constexpr uint32_t kPairsOfSaving = 8;
// From this many choices that lost, the policy's choice for keys not seen yet is not believed either.
constexpr int kLossesOfPolicy = 2;

// A stream holds calls that should take equally long: one key and one config. Its number is never 0.
uint64_t StreamOf(const GuardedCall& call) {
  const CollectiveConfig& config = call.config;
  return uint64_t{1} << 48 | uint64_t{KeyCode(call.key)} << 24 |
         uint64_t{static_cast<uint8_t>(config.algorithm)} << 16 |
         uint64_t{static_cast<uint8_t>(config.protocol)} << 8 | config.channels;
}

}  // namespace

std::string_view Name(GuardReason reason) {
  constexpr std::string_view kNames[] = {
      "slower than NCCL",      "the fabric changed",    "a choice is in doubt", "a trial was too slow",
      "the budget is spent",   "fewer trials are left", "trials begin",         "a trial was better",
      "confirmed earlier",     "no trial was better",   "steps are compared",   "steps are no slower",
      "trials can come faster"};
  return kNames[static_cast<size_t>(reason)];
}

Guard::Guard(GuardOptions options, KnowledgeOf knowledge)
    : options_(options), knowledge_(std::move(knowledge)) {}

GuardedKey& Guard::KeyOf(const TableKey& key) {
  const uint32_t code = KeyCode(key);
  const auto found = keys_.find(code);
  if (found != keys_.end()) return found->second;
  GuardedKey& made = keys_.emplace(code, GuardedKey(key)).first->second;
  KeyKnowledge known = knowledge_(key, fabric());
  made.SetCandidates(std::move(known.candidates));
  const auto carried = carried_.find(code);
  if (carried != carried_.end()) {
    made.Use(carried->second, {});
  } else if (plan_.others_use_policy) {
    made.Use(known.policy_choice, {});
  }
  if (known.confirmed) {
    settled_[code] = true;
    if (*known.confirmed != made.choice()) {
      confirmed_[code] = {key, *known.confirmed};
    } else {
      made.SetProven();
    }
  }
  return made;
}

void Guard::Expect(const TableKey& key, const CollectiveConfig& confirmed) {
  settled_[KeyCode(key)] = true;
  confirmed_[KeyCode(key)] = {key, confirmed};
}

void Guard::TakeCall(const GuardedCall& call) {
  GuardedKey& key = KeyOf(call.key);
  TakeStepOf(call, key);
  key.Take(call);
  detector_.SetLeastSpan(std::min(kVerifiedNs, kVerifiedSteps * steps_.step_ns()));
  pace_.Take(call.use == CallUse::kTrial ? 0 : StreamOf(call), call.at_ns);
  Account(call, key);
  Detect(call);
}

void Guard::TakeStepOf(const GuardedCall& call, const GuardedKey& key) {
  const uint32_t code = KeyCode(call.key);
  steps_.Take(code, call.at_ns);
  if (std::exchange(version_of_steps_, call.version) != call.version) effects_.Restart();
  StepEffects::Call effect{code, call.number, call.at_ns};
  if (key.in_blocks()) {
    effect.arm = call.use == CallUse::kDefaultSample ? StepEffects::Arm::kNccl : StepEffects::Arm::kTable;
  } else {
    effect.excess_ns = key.ExcessOf(call);
  }
  effects_.Take(effect, steps_);
}

void Guard::Account(const GuardedCall& call, GuardedKey& key) {
  const KeyAccount& account = key.account();
  const TimeLevel& level = call.config.leaves_nccl_alone() ? account.default_level() : account.choice_level();
  const bool timed = call.transfer_ns > 0;
  ++calls_;
  const double took_ns = timed ? static_cast<double>(call.transfer_ns) : level.mean();
  total_ns_ += took_ns;
  total_by_level_[static_cast<size_t>(CriticalityOf(call.key))] += took_ns;
  const double trial_ns = key.TakeTrialCost();
  (trial_ns > 0 ? probing_ns_ : refunded_ns_) += std::abs(trial_ns);
  if (timed) probing_ns_ += options_.timing_cost * static_cast<double>(call.transfer_ns);
  const auto ratio = key.Ratio();
  const bool saves = ratio && *ratio < 1 && key.pairs() >= kPairsOfSaving && call.config == key.choice();
  if (saves && call.use == CallUse::kChoice) saved_ns_ += took_ns * (1 / *ratio - 1);
}

void Guard::Detect(const GuardedCall& call) {
  if (call.transfer_ns <= 0 || call.captured || call.use == CallUse::kTrial) return;
  const double transfer = static_cast<double>(call.transfer_ns);
  TimedSample sample;
  sample.stream = StreamOf(call);
  sample.at_ns = call.at_ns;
  sample.log_transfer = std::log(transfer);
  sample.is_usual = !call.on_suspicion;
  if (call.skew_ns >= 0) sample.log_skew = std::log1p(static_cast<double>(call.skew_ns) / transfer);
  const auto change = detector_.Take(sample);
  // Late ranks are no fault of a choice.
  if (change && change->of_fabric) ++regime_changes_;
}

double Guard::CallOfEachKeyNs() const {
  double sum = 0;
  for (const auto& [code, key] : keys_) sum += key.account().default_ns();
  return sum;
}

double Guard::BudgetNs() const {
  const double unit_ns = CallOfEachKeyNs();
  return ProbingBudgetNs(total_ns_, unit_ns) + kProbingCreditCalls * unit_ns + refunded_ns_ +
         kProbingOfSavings * saved_ns_;
}

void Guard::PaceTrials(TablePlan& plan) const {
  std::vector<TriedKey> tried;
  for (const KeyPlan& entry : plan.keys) {
    if (entry.trials.empty()) continue;
    const GuardedKey& key = keys_.at(KeyCode(entry.key));
    tried.push_back({static_cast<uint32_t>(entry.trials.size()), key.TrialCostNs(entry.trials),
                     key.account().total_ns() * key.MayGain(entry.trials), key.calls()});
  }
  const TrialFunds funds{CreditNs(), CallOfEachKeyNs(), total_ns_, regime_changes_ > 0, plan.trials_a_choice};
  const std::vector<uint16_t> rests = RestsBetweenTrials(tried, funds);
  auto rest = rests.begin();
  for (KeyPlan& entry : plan.keys) entry.rest = entry.trials.empty() ? uint16_t{0} : *rest++;
}

// Each key votes with its time: twice as fast counts for, anything less against.
bool Guard::CanGoFaster() {
  if (calls_ < paced_at_ + kPaceEveryCalls) return false;
  paced_at_ = calls_;
  TablePlan faster = plan_;
  for (KeyPlan& entry : faster.keys) {
    if (!entry.trials.empty()) entry.trials = keys_.at(KeyCode(entry.key)).OpenTrials();
  }
  PaceTrials(faster);
  const uint32_t block = plan_.trials_a_choice + 1;
  double faster_ns = 0;
  for (size_t i = 0; i < plan_.keys.size(); ++i) {
    if (faster.keys[i].trials.empty()) continue;
    const bool twice = plan_.keys[i].rest + block >= 2 * (faster.keys[i].rest + block);
    faster_ns += (twice ? 1 : -1) * keys_.at(KeyCode(plan_.keys[i].key)).account().total_ns();
  }
  return faster_ns > 0;
}

bool Guard::WorthTrials(const GuardedKey& key) const {
  if (Hidden(key) || key.in_blocks() || key.captured() || key.timed() < kTimesBeforeTrials) return false;
  if (settled_.contains(KeyCode(key.key()))) return false;
  if (CreditNs() < kProbingCreditCalls / 2 * CallOfEachKeyNs() || key.OpenTrials().empty()) return false;
  return key.account().total_ns() >= options_.least_share * total_ns_;
}

bool Guard::JudgedBySteps(const GuardedKey& key) const {
  return Hidden(key) && compared_.contains(KeyCode(key.key()));
}

bool Guard::MustRevoke(const GuardedKey& key) const {
  if (key.in_blocks() && effects_.blocks().verdict() == BlockComparison::Verdict::kTableIsSlower) return true;
  // A hidden key is judged by steps alone only after a comparison. A program that waits late looks as if it
  // did not wait.
  return JudgedBySteps(key) ? key.IsGross() : key.MustRevoke();
}

bool Guard::CanCompare(const GuardedKey& key) const {
  return Hidden(key) && !key.choice().leaves_nccl_alone() && !key.captured() && !key.searching();
}

bool Guard::MustCompare(const GuardedKey& key) const {
  return CanCompare(key) && !compared_.contains(KeyCode(key.key()));
}

bool Guard::ComparisonIsOver() const {
  if (effects_.blocks().verdict() != BlockComparison::Verdict::kOpen) return true;
  if (effects_.calls_of_step() != block_step_calls_) return true;
  return std::any_of(keys_.begin(), keys_.end(),
                     [this](const auto& entry) { return entry.second.in_blocks() && !Hidden(entry.second); });
}

std::optional<GuardReason> Guard::WhyRevoke() const {
  if (regime_changed()) return GuardReason::kRegimeChanged;
  bool costly = false;
  bool barred = false;
  bool doubt = false;
  size_t trials = 0;
  size_t futile = 0;
  for (const auto& [code, key] : keys_) {
    if (MustRevoke(key)) return GuardReason::kSlowerThanNccl;
    costly |= IsCostly(key);
    barred |= key.MustStopTrial();
    doubt |= key.InDoubt() && !JudgedBySteps(key);
    trials += key.trials();
    futile += TrialsAreOver(key) ? 0 : key.trials() - key.OpenTrials().size();
  }
  if (costly && CreditNs() < 0) return GuardReason::kBudgetSpent;
  if (barred) return GuardReason::kTrialBarred;
  if (doubt) return GuardReason::kDoubt;
  return 3 * futile > trials ? std::optional(GuardReason::kFewerTrials) : std::nullopt;
}

Guard::Search Guard::SearchOfKeys() const {
  Search search;
  for (const auto& [code, key] : keys_) {
    const bool wins = Wins(key);
    const bool ends = key.searching() && TrialsAreOver(key);
    search.comparing |= key.in_blocks();
    search.can_compare |= MustCompare(key);
    search.can_begin |= !key.searching() && WorthTrials(key);
    search.winner |= wins;
    search.ended |= ends;
    if (!key.searching()) continue;
    search.searching = true;
    (wins || ends ? search.decided_ns : search.open_ns) += key.account().total_ns();
    // Every key counts once, whatever its time: each is to be tuned within a number of its own calls.
    if (wins || !ends) ++(wins ? search.ready : search.hopeful);
  }
  return search;
}

// What is ready waits as long as waiting has cost less than the spacing of adoptions would cost the keys that
// are still being tried. Waiting then costs at most as much again as adopting at once.
bool Guard::WinnersWait(const Search& search, int64_t now_ns) {
  waited_ns_ += search.ready * (now_ns - std::exchange(looked_ns_, now_ns));
  return waited_ns_ < search.hopeful * kGuardAdoptionSpacingNs &&
         now_ns - ready_since_ns_ < kGuardAdoptionSpacingNs;
}

std::optional<GuardReason> Guard::WhyAdopt(int64_t now_ns) {
  if (!confirmed_.empty()) return GuardReason::kConfirmed;
  const Search search = SearchOfKeys();
  if (search.comparing && ComparisonIsOver()) return GuardReason::kCompared;
  if (!search.winner && !search.ended && !search.can_begin) {
    ready_since_ns_ = -1;
    const bool begins =
        search.can_compare && !search.comparing && !search.searching && effects_.calls_of_step() > 0;
    return begins ? std::optional(GuardReason::kCompare) : std::nullopt;
  }
  if (ready_since_ns_ < 0 && (search.winner || search.can_begin)) {
    ready_since_ns_ = looked_ns_ = now_ns;
    waited_ns_ = 0;
  }
  if (search.winner) return WinnersWait(search, now_ns) ? std::nullopt : std::optional(GuardReason::kAdopt);
  const bool open = search.open_ns * kMostlyDecided > search.decided_ns;
  if (!search.can_begin) return open ? std::nullopt : std::optional(GuardReason::kSearchEnded);
  return now_ns - ready_since_ns_ < kGatherTrialsNs ? std::nullopt : std::optional(GuardReason::kSearch);
}

std::optional<Proposal> Guard::Tick(int64_t now_ns) {
  if (proposed_) return std::nullopt;
  if (const auto why = WhyRevoke()) return proposed_ = Propose(true, *why);
  if (CanGoFaster()) return proposed_ = Propose(true, GuardReason::kFasterTrials);
  if (now_ns < adopt_from_ns_) return std::nullopt;
  if (const auto why = WhyAdopt(now_ns)) return proposed_ = Propose(false, *why);
  return std::nullopt;
}

// A switch takes options_.switch_calls of the communicator; this key makes its share of them.
uint16_t Guard::PauseOf(const GuardedKey& key) const {
  const double share = static_cast<double>(key.calls()) / static_cast<double>(std::max<uint64_t>(calls_, 1));
  return static_cast<uint16_t>(std::min(std::ceil(share * options_.switch_calls) + 4, 60'000.0));
}

// The key's level is known, or its choice was judged.
bool Guard::IsSteadyWith(const GuardedKey& key, const KeyPlan& entry) const {
  if (entry.choice != key.choice() || entry.in_blocks || key.InDoubt()) return false;
  // Samples must go on until they show whether the program waits for the key.
  if (!key.choice().leaves_nccl_alone())
    return key.calls_of_choice() >= kMiddleCalls && CriticalityOf(key.key()) != Criticality::kUnknown;
  return key.account().default_level().count() >=
         (entry.trials.empty() ? kCalmCalls / kCalmPeriod : kTimesBeforeTrials);
}

CollectiveConfig Guard::ChoiceNext(const GuardedKey& key, bool adopt) const {
  if (MustRevoke(key) || regime_changed()) return kLeaveNcclAlone;
  if (!adopt) return key.choice();
  const auto confirmed = confirmed_.find(KeyCode(key.key()));
  if (confirmed != confirmed_.end()) return confirmed->second.config;
  return Wins(key) ? key.Winner()->candidate.config : key.choice();
}

std::vector<CollectiveConfig> Guard::TrialsNext(const GuardedKey& key, const CollectiveConfig& choice,
                                                GuardReason reason, bool adopt) const {
  const bool may_try = !key.captured() && CreditNs() > 0;
  if (regime_changed()) return may_try ? key.TrialsBeside(choice) : std::vector<CollectiveConfig>();
  if (choice != key.choice()) return {};
  // A winner whose adoption has to wait stays in the plan.
  if (reason == GuardReason::kBudgetSpent && !Wins(key)) return {};
  if (reason == GuardReason::kBudgetSpent) return {key.Winner()->candidate.config};
  const bool goes_on = key.searching() && (Wins(key) || !TrialsAreOver(key));
  const bool begins = adopt && !key.searching() && WorthTrials(key);
  return goes_on || begins ? key.OpenTrials() : std::vector<CollectiveConfig>();
}

KeyPlan Guard::EntryOf(const GuardedKey& key, GuardReason reason, bool adopt) const {
  KeyPlan entry{key.key(), ChoiceNext(key, adopt), {}};
  entry.trials = TrialsNext(key, entry.choice, reason, adopt);
  entry.pause = PauseOf(key);
  entry.in_blocks = InBlocksNext(key, reason);
  entry.first_round = !key.AllMade(entry.trials);
  entry.steady = IsSteadyWith(key, entry);
  if (entry.first_round) entry.known_trials = key.KnownOf(entry.trials);
  return entry;
}

bool Guard::InBlocksNext(const GuardedKey& key, GuardReason reason) const {
  // Keys that were compared before take part again: the effect of a single key may be too small to be seen.
  if (reason == GuardReason::kCompare) return CanCompare(key);
  return key.in_blocks() && reason != GuardReason::kCompared && reason != GuardReason::kRegimeChanged &&
         !MustRevoke(key);
}

bool Guard::EndsSearch(const GuardedKey& key, const KeyPlan& entry, GuardReason reason) const {
  if (reason == GuardReason::kBudgetSpent && !key.search_ended()) return false;
  return key.searching() && entry.trials.empty() && !Hidden(key);
}

void Guard::AddCarried(Proposal& proposal) const {
  if (!options_.carries || proposal.reason == GuardReason::kRegimeChanged) return;
  std::vector<KeyPlan> settled;
  std::set<uint32_t> known;
  for (const KeyPlan& entry : proposal.plan.keys) {
    const uint32_t code = KeyCode(entry.key);
    known.insert(code);
    const auto key = keys_.find(code);
    const bool ends = key != keys_.end() && EndsSearch(key->second, entry, proposal.reason);
    const bool captured = key != keys_.end() && key->second.captured();
    if ((ends || settled_.contains(code)) && !captured) settled.push_back(entry);
  }
  for (KeyPlan& entry : CarriedChoices(settled, known)) {
    if (proposal.plan.keys.size() >= kMaxKeysBesideCarried) return;
    // What an earlier run confirmed is used from the key's first call on.
    if (knowledge_(entry.key, fabric()).confirmed) continue;
    proposal.carried.insert(KeyCode(entry.key));
    proposal.plan.keys.push_back(std::move(entry));
  }
}

Proposal Guard::Propose(bool revocation, GuardReason reason) {
  if (regime_changed()) Relearn();
  Proposal proposal{revocation, reason, plan_, {}};
  proposal.plan.keys.clear();
  proposed_changes_ = regime_changes_;
  // The blocks judge all their keys together, so they count as one loss.
  const bool blocks_lose = effects_.blocks().verdict() == BlockComparison::Verdict::kTableIsSlower;
  int losses = revoked_by_loss_ + (blocks_lose ? 1 : 0);
  for (const auto& [code, key] : keys_) {
    losses += MustRevoke(key) && !(key.in_blocks() && blocks_lose) ? 1 : 0;
    proposal.plan.keys.push_back(EntryOf(key, reason, !revocation));
  }
  for (const auto& [code, confirmed] : confirmed_) {
    if (!revocation && !keys_.contains(code))
      proposal.plan.keys.push_back({confirmed.key, confirmed.config, {}});
  }
  proposed_losses_ = losses;
  if (reason == GuardReason::kCompare)
    proposal.plan.block_calls = kStepsOfBlock * static_cast<uint32_t>(effects_.calls_of_step());
  if (reason == GuardReason::kRegimeChanged || losses >= kLossesOfPolicy) {
    proposal.plan.others_use_policy = false;
  }
  PaceTrials(proposal.plan);
  AddCarried(proposal);
  proposal.plan = Fitting(std::move(proposal.plan));
  return proposal;
}

std::vector<SettledKey> Guard::SettledNow() const {
  std::vector<SettledKey> settled;
  for (const auto& [code, by_earlier_run] : settled_) {
    const auto found = keys_.find(code);
    if (found == keys_.end() || found->second.captured()) continue;
    const GuardedKey& key = found->second;
    settled.push_back({key.key(), fabric_of_keys_, key.choice(), key.Ratio(), key.pairs(), by_earlier_run});
  }
  return settled;
}

std::vector<SettledKey> Guard::AllSettled() const {
  auto latest = settled_before_;
  for (const SettledKey& settled : SettledNow())
    latest.insert_or_assign(std::pair(KeyCode(settled.key), settled.fabric), settled);
  std::vector<SettledKey> all;
  for (const auto& [code_and_fabric, settled] : latest) all.push_back(settled);
  return all;
}

// What was settled is kept for a return of the fabric's former state. The version in use stays until the
// proposed one is committed.
void Guard::Relearn() {
  for (const SettledKey& settled : SettledNow())
    settled_before_.insert_or_assign(std::pair(KeyCode(settled.key), settled.fabric), settled);
  fabric_of_keys_ = fabric();
  settled_.clear();
  confirmed_.clear();
  for (auto& [code, key] : keys_) {
    key.Restart();
    key.SetCandidates(knowledge_(key.key(), fabric()).candidates);
  }
}

void Guard::Committed(uint32_t version, int64_t now_ns) {
  if (!proposed_) return;
  const Proposal done = std::move(*proposed_);
  proposed_.reset();
  version_ = version;
  plan_ = done.plan;
  revoked_by_loss_ = proposed_losses_;
  answered_changes_ = proposed_changes_;
  if (done.reason == GuardReason::kCompare) block_step_calls_ = effects_.calls_of_step();
  carried_.clear();
  std::set<uint32_t> listed;
  for (const KeyPlan& entry : plan_.keys) {
    const uint32_t code = KeyCode(entry.key);
    listed.insert(code);
    // A carried key that was called meanwhile is a key like the others.
    if (done.carried.contains(code) && !keys_.contains(code)) {
      carried_[code] = entry.choice;
    } else {
      TakeUp(entry, done.reason);
    }
  }
  TakeUpUnlisted(listed);
  // Steps with another table are no part of the comparison.
  effects_.RestartBlocks();
  if (!done.revocation) adopt_from_ns_ = now_ns + kGuardAdoptionSpacingNs;
  ready_since_ns_ = -1;
}

void Guard::TakeUp(const KeyPlan& entry, GuardReason reason) {
  const uint32_t code = KeyCode(entry.key);
  GuardedKey& key = KeyOf(entry.key);
  if (EndsSearch(key, entry, reason)) settled_[code] = false;
  confirmed_.erase(code);
  const bool has_verdict = effects_.blocks().verdict() != BlockComparison::Verdict::kOpen;
  if (key.in_blocks() && reason == GuardReason::kCompared && has_verdict) compared_.insert(code);
  if (key.choice() != entry.choice) compared_.erase(code);
  const bool adopts = key.choice() != entry.choice;
  key.Use(entry.choice, entry.trials);
  if (adopts) key.SetProven();  // by trials or by an earlier run
  key.SetInBlocks(entry.in_blocks);
}

// See guard.h: such keys keep the policy's choice only where the plan says so.
void Guard::TakeUpUnlisted(const std::set<uint32_t>& listed) {
  for (auto& [code, key] : keys_) {
    if (listed.contains(code)) continue;
    key.Use(plan_.others_use_policy ? key.choice() : kLeaveNcclAlone, {});
    key.SetInBlocks(false);
  }
}

}  // namespace dynamiccl
