// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/guard.h"

#include <algorithm>
#include <cmath>

namespace dynamiccl {
namespace {

// Times of a key before trials begin: NCCL's level must be known to say what 3x is.
constexpr uint32_t kTimesBeforeTrials = 16;
// What can be adopted waits so long for other keys that are still being tried: adoptions are rare.
constexpr int64_t kGatherNs = 1'000'000'000;
// Or until those still being tried have less than a quarter of the time of the others.
constexpr double kMostlyDecided = 4;
// So many keys whose choice lost: the policy's choice for keys not seen yet is not believed either.
constexpr int kLossesOfPolicy = 2;

}  // namespace

std::string_view Name(GuardReason reason) {
  constexpr std::string_view kNames[] = {
      "slower than NCCL",      "the fabric changed", "a trial was too slow", "the budget is spent",
      "fewer trials are left", "trials begin",       "a trial was better",   "confirmed earlier"};
  return kNames[static_cast<size_t>(reason)];
}

Guard::Guard(GuardOptions options, KnowledgeOf knowledge)
    : options_(options), knowledge_(std::move(knowledge)) {}

GuardedKey& Guard::KeyOf(const TableKey& key) {
  const uint32_t code = KeyCode(key);
  const auto found = keys_.find(code);
  if (found != keys_.end()) return found->second;
  GuardedKey& made = keys_.emplace(code, GuardedKey(key)).first->second;
  KeyKnowledge known = knowledge_(key, regime());
  if (known.confirmed) {
    settled_[code] = true;
    if (*known.confirmed != known.policy_choice) confirmed_[code] = *known.confirmed;
  }
  made.SetCandidates(std::move(known.candidates));
  if (plan_.others_use_policy) made.Use(known.policy_choice, {});
  return made;
}

void Guard::TakeCall(const GuardedCall& call) {
  GuardedKey& key = KeyOf(call.key);
  key.Take(call);
  Account(call, key);
  Detect(call);
}

void Guard::Account(const GuardedCall& call, GuardedKey& key) {
  const KeyAccount& account = key.account();
  const TimeLevel& level = call.config.leaves_nccl_alone() ? account.default_level() : account.choice_level();
  const bool timed = call.transfer_ns > 0;
  ++calls_;
  total_ns_ += timed ? static_cast<double>(call.transfer_ns) : level.mean();
  probing_ns_ += key.TakeTrialCost();
  if (timed) probing_ns_ += options_.timing_cost * static_cast<double>(call.transfer_ns);
}

void Guard::Detect(const GuardedCall& call) {
  if (call.transfer_ns <= 0 || call.captured || call.use == CallUse::kTrial) return;
  const double transfer = static_cast<double>(call.transfer_ns);
  TimedSample sample;
  sample.stream = uint64_t{KeyCode(call.key)} << 24 |
                  uint64_t{static_cast<uint8_t>(call.config.algorithm)} << 16 |
                  uint64_t{static_cast<uint8_t>(call.config.protocol)} << 8 | call.config.channels;
  sample.at_ns = call.at_ns;
  sample.log_transfer = std::log(transfer);
  if (call.skew_ns >= 0) sample.log_skew = std::log1p(static_cast<double>(call.skew_ns) / transfer);
  const auto change = detector_.Take(sample);
  // Late ranks are no fault of a choice.
  if (!change || change->regime == Regime::kStraggler) return;
  regime_changed_ = true;
}

void Guard::SetCriticality(const TableKey& key, Criticality criticality) {
  criticality_[KeyCode(key)] = criticality;
}

double Guard::BudgetNs() const {
  double credit = 0;
  for (const auto& [code, key] : keys_) credit += key.account().default_level().mean();
  return kProbingBudget * total_ns_ + kProbingCreditCalls * credit;
}

bool Guard::WorthTrials(const GuardedKey& key) const {
  const uint32_t code = KeyCode(key.key());
  const auto criticality = criticality_.find(code);
  const bool hidden = criticality != criticality_.end() && criticality->second == Criticality::kHidden;
  if (hidden || key.captured() || settled_.contains(code) || key.timed() < kTimesBeforeTrials) return false;
  if (probing_ns_ > BudgetNs() / 2 || key.OpenTrials().empty()) return false;
  return key.account().total_ns() >= options_.least_share * total_ns_;
}

std::optional<GuardReason> Guard::WhyRevoke() const {
  if (regime_changed_) return GuardReason::kRegimeChanged;
  bool searching = false;
  bool barred = false;
  size_t trials = 0;
  size_t futile = 0;
  for (const auto& [code, key] : keys_) {
    if (key.MustRevoke()) return GuardReason::kSlowerThanNccl;
    searching |= key.searching();
    barred |= key.MustStopTrial();
    trials += key.trials();
    futile += key.search_ended() ? 0 : key.trials() - key.OpenTrials().size();
  }
  if (searching && probing_ns_ > BudgetNs()) return GuardReason::kBudgetSpent;
  if (barred) return GuardReason::kTrialBarred;
  return 3 * futile > trials ? std::optional(GuardReason::kFewerTrials) : std::nullopt;
}

std::optional<GuardReason> Guard::WhyAdopt(int64_t now_ns) {
  if (!confirmed_.empty()) return GuardReason::kConfirmed;
  bool winner = false;
  bool ended = false;
  bool search = false;
  double decided_ns = 0;
  double open_ns = 0;
  for (const auto& [code, key] : keys_) {
    const bool wins = key.Winner() != nullptr;
    const bool ends = key.searching() && key.search_ended();
    winner |= wins;
    ended |= ends;
    search |= !key.searching() && WorthTrials(key);
    if (key.searching()) (wins || ends ? decided_ns : open_ns) += key.account().total_ns();
  }
  const bool open = open_ns * kMostlyDecided > decided_ns;
  if (!winner && !search && !ended) {
    ready_since_ns_ = -1;
    return std::nullopt;
  }
  if (ready_since_ns_ < 0 && (winner || search)) ready_since_ns_ = now_ns;
  if (open && !winner && !search) return std::nullopt;
  if ((open || search) && now_ns - ready_since_ns_ < kGatherNs) return std::nullopt;
  return winner ? GuardReason::kAdopt : GuardReason::kSearch;
}

std::optional<Proposal> Guard::Tick(int64_t now_ns) {
  if (proposed_) return std::nullopt;
  if (const auto why = WhyRevoke()) return proposed_ = Propose(true, *why);
  if (now_ns < adopt_from_ns_) return std::nullopt;
  if (const auto why = WhyAdopt(now_ns)) return proposed_ = Propose(false, *why);
  return std::nullopt;
}

// What a switch takes, in calls of the key.
uint32_t Guard::PauseOf(const GuardedKey& key) const {
  const double share = static_cast<double>(key.calls()) / static_cast<double>(std::max<uint64_t>(calls_, 1));
  return static_cast<uint32_t>(std::ceil(share * options_.switch_calls)) + 4;
}

KeyPlan Guard::EntryOf(const GuardedKey& key, bool adopt) const {
  KeyPlan entry{key.key(), key.choice(), {}};
  entry.pause = PauseOf(key);
  const auto confirmed = confirmed_.find(KeyCode(key.key()));
  if (key.MustRevoke() || regime_changed_) {
    entry.choice = kLeaveNcclAlone;
  } else if (adopt && confirmed != confirmed_.end()) {
    entry.choice = confirmed->second;
  } else if (const Trial* winner = key.Winner(); adopt && winner != nullptr) {
    entry.choice = winner->candidate.config;
  } else if (key.searching() && !key.search_ended()) {
    entry.trials = key.OpenTrials();
    entry.first_round = !key.all_trials_made();
  } else if (adopt && !key.searching() && WorthTrials(key)) {
    entry.trials = key.OpenTrials();
  }
  return entry;
}

Proposal Guard::Propose(bool revocation, GuardReason reason) {
  Proposal proposal{revocation, reason, plan_};
  proposal.plan.keys.clear();
  if (regime_changed_) Relearn();
  int losses = revoked_by_loss_;
  for (const auto& [code, key] : keys_) {
    losses += key.MustRevoke() ? 1 : 0;
    KeyPlan entry = EntryOf(key, !revocation);
    if (reason == GuardReason::kRegimeChanged && !key.captured() && probing_ns_ < BudgetNs()) {
      entry.trials = key.OpenTrials();
    }
    if (reason == GuardReason::kBudgetSpent) entry.trials.clear();
    proposal.plan.keys.push_back(std::move(entry));
  }
  revoked_by_loss_ = losses;
  if (reason == GuardReason::kRegimeChanged || losses >= kLossesOfPolicy) {
    proposal.plan.others_use_policy = false;
  }
  return proposal;
}

// What was learnt of the fabric holds no more; the version in use stays until the proposed one is.
void Guard::Relearn() {
  settled_.clear();
  confirmed_.clear();
  for (auto& [code, key] : keys_) {
    key.Restart();
    key.SetCandidates(knowledge_(key.key(), regime()).candidates);
  }
}

void Guard::Committed(uint32_t version, int64_t now_ns) {
  if (!proposed_) return;
  const Proposal done = std::move(*proposed_);
  proposed_.reset();
  version_ = version;
  plan_ = done.plan;
  for (const KeyPlan& entry : plan_.keys) {
    GuardedKey& key = KeyOf(entry.key);
    // Its trials ended: with a winner, or without.
    const bool ended = key.searching() && entry.trials.empty();
    if (ended && done.reason != GuardReason::kBudgetSpent) settled_[KeyCode(entry.key)] = false;
    confirmed_.erase(KeyCode(entry.key));
    key.Use(entry.choice, entry.trials);
  }
  if (done.reason == GuardReason::kRegimeChanged) regime_changed_ = false;
  if (!done.revocation) adopt_from_ns_ = now_ns + kGuardAdoptionSpacingNs;
  ready_since_ns_ = -1;
}

std::vector<TableKey> Guard::Unguarded() const {
  std::vector<TableKey> captured;
  for (const auto& [code, key] : keys_) {
    if (key.captured()) captured.push_back(key.key());
  }
  return captured;
}

}  // namespace dynamiccl
