// SPDX-License-Identifier: Apache-2.0
// The guard's rules. guard.h outlines the life of a key; docs/guard.md gives the promises and the terms.
#include "src/decision/guard/guard.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/decision/guard/carried_choices.h"
#include "src/decision/guard/table_plan.h"

namespace dynamiccl {
namespace {

// A plan gets carried entries (choices for keys that were never called) only up to this many keys. More keys
// would leave no room for arms (plan_bytes.h).
constexpr size_t kMaxKeysBesideCarried = 300;
// After this many choices of the policy were revoked as slower than NCCL's, new keys begin with NCCL's choice
// and not with the policy's.
constexpr int kLossesOfPolicy = 2;
// The first step that draws arms comes kCallsToAgree calls or kStepsToAgree steps after the proposal,
// whichever is sooner. The ranks mostly agree on the version in that time. If they need longer, the first
// draws are missed.
constexpr uint64_t kCallsToAgree = 32;
constexpr uint64_t kStepsToAgree = 4;
// A choice is revoked when steps with NCCL's choice are faster by this many standard errors. After n blocks
// of steps more are needed, by the factor 1 + kFewBlocks / n: only one step in 32 uses NCCL's choice beside a
// proven one, so a single odd step weighs much at first. After a change of the fabric, n counts steps with
// NCCL's choice instead of blocks: every second step then uses NCCL's choice, so one block says much.
constexpr double kRevokedErrors = 3;
constexpr double kFewBlocks = 3;
// Once the common search has ended with a gain, a key tries this many arms at a time, because little is left
// to gain.
constexpr size_t kArmsAfterGain = 4;
// The effect of an adoption is known if its standard error, in logs, is at most this.
constexpr double kKnownEffect = 0.05;
// Steps must have used NCCL's choice this often before it may count as slower.
constexpr uint32_t kStepsOfSlower = 2;

// Arms of the key with this code in the plan; null if it has none.
const std::vector<CollectiveConfig>* ArmsOf(const TablePlan& plan, uint32_t code) {
  const auto entry = std::find_if(plan.keys.begin(), plan.keys.end(),
                                  [code](const KeyPlan& each) { return KeyCode(each.key) == code; });
  return entry == plan.keys.end() ? nullptr : &entry->arms;
}

bool IsOfFabric(GuardReason reason) {
  return reason == GuardReason::kRegimeChanged || reason == GuardReason::kPaceChanged;
}

bool NotNccls(const CollectiveConfig& config) {
  return !config.leaves_nccl_alone();
}

// True if one of the arms, NCCL's own choice left out, is not among `others`.
bool UsesOther(const std::vector<CollectiveConfig>* arms, const std::vector<CollectiveConfig>& others) {
  return arms != nullptr && std::any_of(arms->begin(), arms->end(), [&](const CollectiveConfig& arm) {
           return NotNccls(arm) && std::find(others.begin(), others.end(), arm) == others.end();
         });
}

bool IsArm(const TablePlan& plan, uint32_t code, const CollectiveConfig& config) {
  const auto* arms = ArmsOf(plan, code);
  return arms != nullptr && std::find(arms->begin(), arms->end(), config) != arms->end();
}

}  // namespace

std::string_view Name(GuardReason reason) {
  constexpr std::string_view kNames[] = {
      "slower than NCCL",    "the fabric changed",   "steps take another time",
      "steps have changed",  "a choice is in doubt", "a trial was too slow",
      "the budget is spent", "trials begin",         "a trial was better",
      "confirmed earlier",   "proved again",         "other trials",
      "no trial was better"};
  static_assert(std::size(kNames) == kGuardReasons);
  return kNames[static_cast<size_t>(reason)];
}

Guard::Guard(GuardOptions options, KnowledgeOf knowledge)
    : options_(options), knowledge_(std::move(knowledge)), plan_(options_.first) {}

GuardedKey& Guard::KeyOf(const TableKey& key) {
  const uint32_t code = KeyCode(key);
  const auto found = keys_.find(code);
  if (found != keys_.end()) return found->second;
  GuardedKey& made = keys_.emplace(code, GuardedKey(key)).first->second;
  KeyKnowledge known = knowledge_(key, fabric());
  made.search().SetCandidates(std::move(known.candidates));
  made.Predict(known.nccls_ns);
  const auto carried = carried_.find(code);
  if (carried != carried_.end()) {
    made.Use(carried->second, false);
  } else if (plan_.others_use_policy) {
    made.Use(known.policy_choice, false);
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
  newest_call_ = call.number;
  if (!Reduces(call.key.collective)) newest_gather_ = call.number;
  newest_ns_ = call.at_ns;
  bytes_ += static_cast<double>(LowerBound(call.key.size_class));
  structure_.Take(call.structure_changes, call.stage);
  TakeStepOf(call, key);
  key.Take(call);
  Account(call, key);
  Detect(call);
}

void Guard::TakeStepOf(const GuardedCall& call, const GuardedKey& key) {
  const uint32_t code = KeyCode(call.key);
  // The recognised role may change from step to step, so the step's period is computed from keys without the
  // role.
  steps_.Take(KeyCode({call.key.collective, call.key.size_class, Role::kUnknown}), call.at_ns);
  if (std::exchange(version_of_steps_, call.version) != call.version) effects_.Restart();
  BeginVersion(call);
  const bool is_known = call.use == CallUse::kChoice || call.transfer_ns > 0;
  effects_.Take({code, call.number, call.at_ns, key.ExcessOf(call), is_known}, steps_);
  FollowSteps(call);
  const bool takes_part = searches_together() || key.drawn() || key.search().began();
  const auto log_step_ns = experiment_.Take(call, takes_part);
  if (log_step_ns) DetectBySteps(call, *log_step_ns);
}

void Guard::JudgeArms() {
  if (experiment_.steps() == judged_steps_) return;
  judged_steps_ = experiment_.steps();
  const bool ended_block = std::exchange(judged_blocks_, experiment_.blocks()) != experiment_.blocks();
  if (ended_block) ConfirmChange();
  // An arm that all keys use may double a step's time. So it is judged after every step and not only after
  // every block.
  if (searches_together()) return JudgeCommon();
  if (!ended_block) return;
  for (auto& [code, key] : keys_) {
    if (!key.search().began()) continue;
    const auto slow = key.search().Judge(SeenBeside(key, key.choice()));
    arm_too_slow_ |= std::any_of(slow.begin(), slow.end(), [&, code = code](const CollectiveConfig& config) {
      return IsArm(plan_, code, config);
    });
  }
}

void Guard::Account(const GuardedCall& call, const GuardedKey& key) {
  const KeyAccount& account = key.account();
  const TimeLevel& level = call.config.leaves_nccl_alone() ? account.default_level() : account.choice_level();
  const bool timed = call.transfer_ns > 0;
  const double took_ns = timed ? static_cast<double>(call.transfer_ns) : level.mean();
  total_ns_ += took_ns;
  total_by_level_[static_cast<size_t>(CriticalityOf(call.key))] += took_ns;
  if (timed) timing_ns_ += options_.timing_cost * static_cast<double>(call.transfer_ns);
}

// A choice that makes steps faster may take longer itself. So while steps judge a choice, the durations of
// its calls revoke it only if they are several times as long as NCCL's.
bool Guard::MustRevoke(const GuardedKey& key) const {
  if (key.choice().leaves_nccl_alone() || !key.drawn()) return key.MustRevoke();
  const SeenConfig nccl = experiment_.Seen(KeyCode(key.key()), kLeaveNcclAlone, key.choice());
  if (nccl.steps == 0) return key.IsGross();
  const double errors = kRevokedErrors * (1 + kFewBlocks / (proves_again_ ? nccl.steps : nccl.blocks));
  return key.IsGross() || nccl.effect.mean < -std::max(kLeastGain, errors * nccl.effect.error);
}

bool Guard::ArmsMayCost() const {
  if (!plan_.common.empty()) return UsesOther(&plan_.common, common_.Next(experiment_, false));
  return std::any_of(keys_.begin(), keys_.end(), [this](const auto& each) {
    const GuardedKey& key = each.second;
    return UsesOther(ArmsOf(plan_, each.first), key.search().Next(SeenBeside(key, key.choice()), false));
  });
}

std::optional<GuardReason> Guard::WhyRevoke() const {
  if (regime_changed()) return changed_by_steps_ ? GuardReason::kPaceChanged : GuardReason::kRegimeChanged;
  bool doubt = false;
  for (const auto& [code, key] : keys_) {
    if (MustRevoke(key)) return GuardReason::kSlowerThanNccl;
    doubt |= key.InDoubt();
  }
  const StepGrid& grid = experiment_.grid();
  const bool same_steps =
      plan_.step_calls == grid.calls && grid.calls > 0 && (plan_.step_origin - grid.origin) % grid.calls == 0;
  if (HasArms(plan_) && !same_steps) return GuardReason::kStepsChanged;
  if (HasArms(plan_) && arm_too_slow_) return GuardReason::kArmTooSlow;
  if (HasArms(plan_) && CreditNs() < 0 && ArmsMayCost()) return GuardReason::kBudgetSpent;
  return doubt ? std::optional(GuardReason::kDoubt) : std::nullopt;
}

std::optional<GuardReason> Guard::WhyAdopt() const {
  if (!confirmed_.empty()) return GuardReason::kConfirmed;
  if (!has_steps()) return std::nullopt;
  if (ProvesNeedlessly()) return GuardReason::kProvedAgain;
  if (searches_together()) return WhyAdoptCommon();
  bool begins = false;
  size_t in_use = 0, still = 0;
  for (const auto& [code, key] : keys_) {
    const auto seen = SeenBeside(key, key.choice());
    if (key.search().Winner(seen)) return GuardReason::kAdopt;
    begins |= !key.search().began() && CanSearch(key);
    begins |= !proofs_asked_ && !key.drawn() && StepsCanProve(key);
    const auto* arms = ArmsOf(plan_, code);
    if (arms == nullptr) continue;
    in_use += static_cast<size_t>(std::count_if(arms->begin(), arms->end(), NotNccls));
    for (const CollectiveConfig& arm : key.search().Next(seen, true))
      still += IsArm(plan_, code, arm) ? 1 : 0;
  }
  if ((begins || resting_) && CreditNs() > StepNs()) return GuardReason::kSearch;
  if (resting_) return std::nullopt;
  return NeedsOtherArms(in_use, still) ? std::optional(GuardReason::kNextArms) : std::nullopt;
}

std::optional<Proposal> Guard::Tick(int64_t now_ns) {
  if (proposed_) return std::nullopt;
  JudgeArms();
  if (const auto why = WhyRevoke()) return proposed_ = Propose(true, *why);
  if (now_ns < adopt_from_ns_) return std::nullopt;
  if (const auto why = WhyAdopt()) return proposed_ = Propose(false, *why);
  return std::nullopt;
}

// True if the key needs no dense samples: its choice stays, and steps or many calls have judged the choice.
// If the choice is NCCL's, enough of its calls must have been timed.
bool Guard::IsSteadyWith(const GuardedKey& key, const KeyPlan& entry) const {
  if (entry.choice != key.choice() || key.InDoubt()) return false;
  if (!key.choice().leaves_nccl_alone()) return key.proven() || key.calls_of_choice() >= kMiddleCalls;
  return key.account().default_level().count() >= kCalmCalls / kCalmPeriod;
}

CollectiveConfig Guard::ChoiceNext(const GuardedKey& key, bool adopt) const {
  if (MustRevoke(key)) return kLeaveNcclAlone;
  // After a change of the fabric all keys together try the config that most of them used, or steps prove each
  // choice again. A choice that steps cannot prove is replaced by NCCL's.
  if (regime_changed() && ((used_before_ && searches_together()) || (!key.drawn() && !StepsCanProve(key))))
    return kLeaveNcclAlone;
  if (!adopt) return key.choice();
  const auto confirmed = confirmed_.find(KeyCode(key.key()));
  if (confirmed != confirmed_.end()) return confirmed->second.config;
  if (proposed_winner_)
    return key.search().MayUse(*proposed_winner_) && CanSearch(key) ? *proposed_winner_ : key.choice();
  const auto winner = key.search().Winner(SeenBeside(key, key.choice()));
  return winner.value_or(key.choice());
}

KeySearch Guard::SearchNext(const GuardedKey& key, const CollectiveConfig& choice, GuardReason reason,
                            bool adopt) const {
  KeySearch next = key.search();
  const auto seen = SeenBeside(key, choice);
  if (choice != key.choice()) next.Adopt(choice);
  if (next.began()) (void)next.Judge(seen);
  if (searches_together()) return next;
  const bool confirmed = reason == GuardReason::kConfirmed || reason == GuardReason::kProvedAgain;
  const bool may_add = adopt && !confirmed && (next.began() || CanSearch(key));
  if (!next.began() && IsLatencyCritical(key.key().role, CriticalityOf(key.key()))) next.PreferLowLatency();
  if (may_add && CreditNs() > 0 && !settled_.contains(KeyCode(key.key())))
    next.Refill(choice, seen, common_choice_ ? kArmsAfterGain : kMaxArms);
  return next;
}

// NCCL's own choice stays an arm beside a choice of the guard, so that steps compare the two. Each use costs
// time, so NCCL's choice is left out once steps show that it is slower and the key has other arms to try.
bool Guard::NeedsNccls(const KeyPlan& entry) const {
  return entry.arms.empty() || !IsNcclsSlower(entry);
}

bool Guard::IsNcclsSlower(const KeyPlan& entry) const {
  const SeenConfig nccl = experiment_.Seen(KeyCode(entry.key), kLeaveNcclAlone, entry.choice);
  return nccl.steps >= kStepsOfSlower && nccl.effect.mean > kRevokedErrors * nccl.effect.error;
}

// Arms that the fewest steps have used come first, because a version may end before it has used all of them.
KeyPlan Guard::EntryOf(const GuardedKey& key, GuardReason reason, bool adopt) {
  KeyPlan entry{key.key(), ChoiceNext(key, adopt), {}};
  // Steps have already judged the winner, so its version needs no dense samples.
  entry.steady = IsSteadyWith(key, entry) || (proposed_winner_ && entry.choice == *proposed_winner_);
  const KeySearch& search = proposed_searches_[KeyCode(key.key())] =
      SearchNext(key, entry.choice, reason, adopt);
  const bool draws = has_steps() && !key.captured() && reason != GuardReason::kStepsChanged;
  if (!draws) return entry;
  entry.joins = searches_together() && CanSearch(key);
  if (searches_together()) return entry;
  const bool rests = reason == GuardReason::kBudgetSpent || (resting_ && reason != GuardReason::kSearch);
  entry.arms = search.Next(SeenBeside(key, entry.choice), !rests);
  const bool proven = key.proven() || entry.choice != key.choice();
  if (!entry.choice.leaves_nccl_alone() && (proven || !entry.arms.empty()) && NeedsNccls(entry))
    entry.arms.push_back(kLeaveNcclAlone);
  std::stable_sort(entry.arms.begin(), entry.arms.end(), [&](const auto& a, const auto& b) {
    const uint32_t code = KeyCode(entry.key);
    return experiment_.Seen(code, a, entry.choice).steps < experiment_.Seen(code, b, entry.choice).steps;
  });
  return entry;
}

void Guard::AddCarried(Proposal& proposal) const {
  if (!options_.carries || IsOfFabric(proposal.reason)) return;
  std::vector<KeyPlan> settled;
  std::set<uint32_t> known;
  for (const KeyPlan& entry : proposal.plan.keys) {
    const uint32_t code = KeyCode(entry.key);
    known.insert(code);
    const auto key = keys_.find(code);
    const auto search = proposed_searches_.find(code);
    const bool ends = search != proposed_searches_.end() && search->second.over();
    const bool captured = key != keys_.end() && key->second.captured();
    if ((ends || settled_.contains(code)) && !captured) settled.push_back(entry);
  }
  std::vector<KeyPlan> carried = CarriedChoices(settled, known);
  for (KeyPlan& entry : CarriedToRoles(settled, known)) carried.push_back(std::move(entry));
  for (KeyPlan& entry : carried) {
    if (proposal.plan.keys.size() >= kMaxKeysBesideCarried) return;
    // A choice that an earlier run confirmed comes before a carried one: it is used from the key's first call
    // on.
    if (knowledge_(entry.key, fabric()).confirmed) continue;
    proposal.carried.insert(KeyCode(entry.key));
    proposal.plan.keys.push_back(std::move(entry));
  }
}

Proposal Guard::Propose(bool revocation, GuardReason reason) {
  if (regime_changed()) Relearn();
  Proposal proposal{revocation, reason, plan_, {}};
  proposal.plan.keys.clear();
  proposed_searches_.clear();
  proposed_changes_ = regime_changes_;
  proposed_losses_ = revoked_by_loss_;
  proposed_winner_.reset();
  if (searches_together() && !revocation && reason == GuardReason::kAdopt)
    proposed_winner_ = common_.Winner(experiment_);
  bool draws = false, tries = false;
  for (const auto& [code, key] : keys_) {
    proposed_losses_ += MustRevoke(key) ? 1 : 0;
    proposal.plan.keys.push_back(EntryOf(key, reason, !revocation));
    draws |= !proposal.plan.keys.back().arms.empty();
    tries |= !proposed_searches_[code].open().empty();
  }
  PlanCommon(reason, !revocation, proposal.plan);
  draws |= !proposal.plan.common.empty();
  tries |= searches_together();
  if (reason == GuardReason::kNextArms && !tries) proposal.reason = GuardReason::kSearchEnded;
  for (const auto& [code, confirmed] : confirmed_) {
    if (!revocation && !keys_.contains(code))
      proposal.plan.keys.push_back({confirmed.key, confirmed.config, {}});
  }
  if (IsOfFabric(reason) || proposed_losses_ >= kLossesOfPolicy) {
    proposal.plan.others_use_policy = false;
  }
  const StepGrid& grid = experiment_.grid();
  // Even without arms, the leader's rank stamps the begin of each step with its device's clock. So all steps
  // are timed by the same clock.
  proposal.plan.step_calls = reason == GuardReason::kStepsChanged ? 0 : grid.calls;
  proposal.plan.step_origin = 0;
  if (proposal.plan.step_calls > 0) {
    const uint64_t ahead = std::min<uint64_t>(kCallsToAgree, kStepsToAgree * grid.calls);
    const uint64_t steps = (newest_call_ + ahead - grid.origin) / grid.calls + 1;
    proposal.plan.step_origin = grid.origin + steps * grid.calls;
    if (draws) PaceArms(proposal.plan);
  }
  AddCarried(proposal);
  proposal.plan = Fitting(std::move(proposal.plan));
  return proposal;
}

void Guard::Failed(int64_t now_ns) {
  if (proposed_ && !proposed_->revocation) adopt_from_ns_ = now_ns + kGuardRetryNs;
  proposed_.reset();
}

void Guard::Committed(uint32_t version, int64_t now_ns) {
  if (!proposed_) return;
  const Proposal done = std::move(*proposed_);
  proposed_.reset();
  version_ = version;
  plan_ = done.plan;
  revoked_by_loss_ = proposed_losses_;
  answered_changes_ = proposed_changes_;
  arm_too_slow_ = false;
  if (searches_together()) common_ = proposed_common_;
  // Without credit, nothing replaces an arm that was too slow. The search goes on when there is credit again.
  const bool no_arms = searches_together() && common_.began() && !proposed_winner_ && plan_.common.empty();
  resting_ = done.reason == GuardReason::kBudgetSpent || no_arms ||
             (resting_ && done.reason != GuardReason::kSearch);
  proofs_asked_ |= done.reason == GuardReason::kSearch;
  AwaitVersion(done);
  carried_.clear();
  std::set<uint32_t> listed;
  for (const KeyPlan& entry : plan_.keys) {
    const uint32_t code = KeyCode(entry.key);
    listed.insert(code);
    // A carried key that was called in the meantime is treated like any other key.
    if (done.carried.contains(code) && !keys_.contains(code)) {
      carried_[code] = entry.choice;
    } else {
      TakeUp(entry);
    }
  }
  TakeUpUnlisted(listed);
  // The adopted configs change how long calls take. The detector must not take this for a change of the
  // fabric.
  if (done.reason == GuardReason::kAdopt) detector_.Forget();
  if (proposed_winner_) EndCommon(std::exchange(proposed_winner_, std::nullopt));
  if (!done.revocation) adopt_from_ns_ = now_ns + kGuardAdoptionSpacingNs;
}

// The expected effect of an adoption is what steps showed when they tried the adopted configs. If too few
// steps have tried one of the configs, the effect is not known.
void Guard::AwaitVersion(const Proposal& proposal) {
  const auto known = [](const SeenConfig& seen) {
    const bool is_known = seen.steps > 0 && seen.effect.error <= kKnownEffect;
    return is_known ? std::optional(seen.effect.mean) : std::nullopt;
  };
  std::optional<double> effect = 0;
  bool adopts = false;
  for (const KeyPlan& entry : proposal.plan.keys) {
    const auto key = keys_.find(KeyCode(entry.key));
    if (key == keys_.end() || key->second.choice() == entry.choice) continue;
    const auto of_key = known(SeenBeside(key->second, key->second.choice())(entry.choice));
    effect = effect && of_key ? std::optional(*effect + *of_key) : std::nullopt;
    adopts = true;
  }
  if (proposed_winner_) effect = known(experiment_.Seen(kAllKeys, *proposed_winner_, kLeaveNcclAlone));
  if (adopts && awaited_.adopts && effect)
    effect = awaited_.effect ? std::optional(*effect + *awaited_.effect) : std::nullopt;
  awaited_.version = version_;
  if (adopts) awaited_.effect = effect;
  awaited_.adopts |= adopts;
  awaited_.answers_change |= IsOfFabric(proposal.reason);
}

void Guard::BeginVersion(const GuardedCall& call) {
  if (awaited_.version == 0 || call.version < awaited_.version) return;
  const Awaited begun = std::exchange(awaited_, {});
  if (begun.adopts) {
    step_watch_.Adopt(begun.effect);
    step_witness_.Forget();
  }
  if (!begun.answers_change) return;
  lost_before_ns_ += experiment_.lost_ns();
  experiment_.Begin(experiment_.grid(), !common_.done());
  judged_steps_ = judged_blocks_ = 0;
}

void Guard::TakeUp(const KeyPlan& entry) {
  const uint32_t code = KeyCode(entry.key);
  GuardedKey& key = KeyOf(entry.key);
  confirmed_.erase(code);
  const bool adopts = key.choice() != entry.choice;
  key.Use(entry.choice, !entry.arms.empty() || entry.joins);
  if (adopts) key.SetProven();  // steps or an earlier run have proved the choice
  const auto search = proposed_searches_.find(code);
  if (search == proposed_searches_.end()) return;
  key.search() = std::move(search->second);
  if (key.search().over()) settled_.try_emplace(code, false);
}

// Keys that the plan does not list keep their choice only if TablePlan::others_use_policy is set; else NCCL
// chooses.
void Guard::TakeUpUnlisted(const std::set<uint32_t>& listed) {
  for (auto& [code, key] : keys_) {
    if (!listed.contains(code)) key.Use(plan_.others_use_policy ? key.choice() : kLeaveNcclAlone, false);
  }
}

}  // namespace dynamiccl
