// SPDX-License-Identifier: Apache-2.0
// The guard's experiment: when it begins, what it may cost, and how often a key uses an arm.
#include <algorithm>
#include <cmath>

#include "src/decision/guard/guard.h"

namespace dynamiccl {
namespace {

// An experiment begins only after this many calls in a row that repeat. At least kStepsRepeated steps must
// repeat, kStepsBefore of them after the period of the calls was found.
// kCallsOfLayers holds if the step has calls that gather parameters, because such calls may be equal layers
// of one step: FSDP gathers 80 to 126 of them in a row. kCallsOfBuckets holds otherwise. It may be too few
// for equal buckets of DDP, which then count as steps for a while. That costs little, because such a step's
// credit is as short as a bucket, and the experiment begins anew with the true steps.
constexpr size_t kCallsOfLayers = 128;
constexpr size_t kCallsOfBuckets = 14;
constexpr size_t kStepsRepeated = 7;
constexpr size_t kStepsBefore = 2;
// An experiment ends after this many consecutive steps whose calls differ, in their number or kind, from
// those at its start.
constexpr uint64_t kMisfitSteps = 6;
// The least duration of a step of the experiment, in nanoseconds. Shorter program steps are combined, because
// a host that runs ahead of its device issues single calls at irregular times.
constexpr int64_t kLeastStepNs = 4'000'000;
// Assumed loss of an untried config on a key with a third of the bytes or more, as the log of the step's time
// ratio. A key with fewer bytes has proportionally less.
constexpr double kUnknownLoss = 0.05;
constexpr double kSharesOfWhole = 3;
// Assumed loss of an untried config that all keys use together, as the log of the step's time ratio. With it,
// one step of eight uses such a config at kFastPace. With one step of five, 20 steps of a simulated job took
// 14 % longer (guard_test allows 10 %).
constexpr double kUnknownLossTogether = 0.24;
// The first use of a common arm also sets up connections. After it, the arm still counts as untried, unless
// the step was faster than usual by this many standard errors.
constexpr double kFastFirstUse = 3;
// Share of the steps' time that the experiment may cost: kFastPace while there is credit and no common config
// has been adopted yet, else kUsualPace.
constexpr double kUsualPace = 0.01;
constexpr double kFastPace = 0.03;
// Least and largest number of steps from one use of an arm by a key to the next.
constexpr double kLeastSpacing = 2;
constexpr double kMaxSpacing = 60;
// A new version begins if its common arms may be used at least this many times as often as in the version in
// use.
constexpr int kHurryTimes = 2;
// After this many blocks of steps the experiment leaves kFastPace for kUsualPace, because it tries the most
// promising common arms first and has tried them by then.
constexpr uint32_t kHurriedBlocks = 14;
// A version that uses common arms more often also needs an arm that looks faster by this many standard
// errors.
constexpr double kHurriedErrors = 1;
// The leader of the common search pauses in one step of 8, 4 or 2. Rare pauses gain more time before the
// leader is adopted, but it then takes more steps until the gain is sure. The search takes the rarest pause
// with which the proof takes at most kStepsToProve steps, half of what the regression remembers.
constexpr uint16_t kPauses[] = {8, 4, 2};
constexpr double kStepsToProve = 360;
// While only a belief speaks for the leader, it pauses in one step of this many.
constexpr uint16_t kPauseOfBelieved = 4;
// Of the steps in which a leader could be used, challengers take at most one in this many.
constexpr double kLeastChallengerSpacing = 8;
// Steps from one use of NCCL's choice to the next, for a key whose only arm is NCCL's choice. kProvingSpacing
// holds while a choice is proved again after a change of the fabric: until NCCL's choice is surely slower, or
// the standard error of its effect is below kKnownError. kWatchSpacing holds otherwise, and is also the pause
// of a leader that is surely faster.
constexpr uint16_t kProvingSpacing = 2;
constexpr double kKnownError = 0.02;
constexpr uint16_t kWatchSpacing = 32;

// True if the key tries nothing, and some steps use NCCL's choice only for comparison with the key's choice.
bool WatchesOnly(const KeyPlan& entry) {
  return entry.arms.size() == 1 && entry.arms[0].leaves_nccl_alone();
}

}  // namespace

void Guard::FollowSteps(const GuardedCall& call) {
  if (has_steps() && steps_.calls() == 0) return BeginExperiment({}, call.at_ns);
  const uint64_t calls = effects_.calls_of_step();
  const bool gathers = newest_gather_ && newest_call_ - *newest_gather_ < calls;
  const size_t least = std::max(gathers ? kCallsOfLayers : kCallsOfBuckets, kStepsRepeated * steps_.calls());
  const bool repeats = steps_.repeated() >= least;
  if (calls == 0 || !repeats || effects_.held() < kStepsBefore * steps_.calls()) return;
  // The calls repeat, and for some time they have not been those with which the experiment began.
  const bool has_other_calls = experiment_.unlike() >= kMisfitSteps;
  if (has_steps() && calls == period_of_grid_ && !has_other_calls) {
    misfits_ = 0;
    return;
  }
  if (has_steps() && !has_other_calls && ++misfits_ < kMisfitSteps * calls) return;
  if (structure_.IsOther(steps_.digest())) Reopen(calls);
  ForgetOtherCircumstances();
  const int64_t step_ns = std::max<int64_t>(steps_.step_ns(), 1);
  const int64_t together = std::clamp<int64_t>(kLeastStepNs / step_ns, 1, 4096);
  period_of_grid_ = calls;
  const auto times = static_cast<uint64_t>(together);
  BeginExperiment({effects_.step_begins_at(), static_cast<uint32_t>(calls * times), times * steps_.digest()},
                  call.at_ns);
}

// Effects measured on the former steps do not hold for the new ones, so every search begins anew. The credit
// is not renewed: a program whose steps keep changing gets no more.
void Guard::BeginExperiment(StepGrid grid, int64_t now_ns) {
  lost_before_ns_ += experiment_.lost_ns();
  saved_before_ns_ = SavedNs();
  common_from_ns_ = now_ns;
  common_choice_.reset();
  common_seen_ = {};
  if (grid.calls > 0 && !common_.done()) {
    common_.Restart();
    if (KeysThatJoin().empty()) common_.End();
  }
  experiment_.Begin(grid, !common_.done());
  if (searching_from_ns_ < 0 && grid.calls > 0) {
    searching_from_ns_ = now_ns;
    credited_call_ = newest_call_;
  }
  misfits_ = judged_steps_ = 0;
  judged_blocks_ = 0;
  arm_too_slow_ = resting_ = proofs_asked_ = false;
  for (auto& [code, key] : keys_) key.search().Restart();
}

std::vector<JoiningKey> Guard::KeysThatJoin() const {
  std::vector<JoiningKey> joining;
  for (const auto& [code, key] : keys_) {
    const bool may = !key.captured() && key.search().has_candidates() && !settled_.contains(code);
    if (may && ShareOf(key) >= options_.least_share)
      joining.push_back({ShareOf(key), &key.search().candidates()});
  }
  return joining;
}

void Guard::JudgeCommon() {
  const auto slow = common_.Judge(experiment_);
  if (used_before_ && common_.GaveUp(used_before_->config)) used_before_.reset();
  arm_too_slow_ |= std::any_of(slow.begin(), slow.end(), [this](const CollectiveConfig& config) {
    return std::find(plan_.common.begin(), plan_.common.end(), config) != plan_.common.end();
  });
  if (common_.began() && common_.over(experiment_) && !common_.TryAgain(experiment_)) EndCommon(std::nullopt);
}

void Guard::EndCommon(const std::optional<CollectiveConfig>& winner) {
  const SeenConfig seen = winner ? experiment_.Seen(kAllKeys, *winner, kLeaveNcclAlone) : SeenConfig{};
  kept_findings_ = Findings();
  common_.End();
  used_before_.reset();
  BeginExperiment(experiment_.grid(), newest_ns_);
  common_choice_ = winner;
  common_seen_ = seen;
}

std::optional<GuardReason> Guard::WhyAdoptCommon() const {
  if (common_.Winner(experiment_)) return GuardReason::kAdopt;
  if (HasNewCircumstances()) return GuardReason::kNextArms;
  const auto can_search = [this](const auto& each) { return CanSearch(each.second); };
  const bool may_begin =
      !common_.began() && !AwaitsCircumstances() && std::any_of(keys_.begin(), keys_.end(), can_search);
  if ((may_begin || resting_) && CreditNs() > StepNs()) return GuardReason::kSearch;
  if (resting_) return std::nullopt;
  const auto next = common_.Next(experiment_, true);
  size_t still = 0;
  for (const CollectiveConfig& arm : plan_.common)
    still += std::find(next.begin(), next.end(), arm) != next.end() ? 1 : 0;
  return NeedsOtherPace(next) || NeedsOtherArms(plan_.common.size(), still)
             ? std::optional(GuardReason::kNextArms)
             : std::nullopt;
}

// A new leader is to be used in most steps. Without a leader, arms are to be used much more often if one of
// them looks like a gain and they turned out to cost little.
bool Guard::NeedsOtherPace(const std::vector<CollectiveConfig>& next) const {
  const bool looks_faster = common_.LooksFaster(experiment_, kHurriedErrors);
  if (const auto leader = common_.Leader(experiment_)) {
    const uint16_t pause = PauseOf(*leader);
    const bool became_sure = pause == kWatchSpacing && plan_.common_pause < kWatchSpacing;
    return plan_.common_pause == 0 || plan_.common.front() != *leader || pause < plan_.common_pause ||
           became_sure || common_.LacksChallenger(experiment_);
  }
  if (plan_.common_pause > 0) return !looks_faster;
  return looks_faster && !next.empty() && kHurryTimes * CommonSpacing(next) <= plan_.common_spacing;
}

// If arms are used in all but one of p steps, the variance of an effect after n steps is that of a step times
// p * p / (p - 1) / n.
uint16_t Guard::PauseOf(const CollectiveConfig& leader) const {
  const SeenConfig seen = experiment_.Seen(kAllKeys, leader, kLeaveNcclAlone);
  if (seen.steps == 0) return kPauseOfBelieved;
  if (IsSurelyFaster(seen)) return kWatchSpacing;
  const double effect = common_.Known(leader, experiment_).mean;
  const double errors = kAdoptedErrors * experiment_.noise() / effect;
  for (const uint16_t pause : kPauses) {
    if (errors * errors * pause * pause / (pause - 1) <= kStepsToProve) return pause;
  }
  return kPauses[std::size(kPauses) - 1];
}

void Guard::PlanCommon(GuardReason reason, bool adopt, TablePlan& plan) {
  plan.common.clear();
  plan.common_pause = 0;
  proposed_common_ = common_;
  if (!searches_together()) return;
  if (!common_.began()) proposed_common_.SetCandidates(CommonCandidates(KeysThatJoin()));
  if (!common_.began() || !common_.circumstances()) UseFindings();
  const bool begins = reason == GuardReason::kSearch;
  if (begins) changed_circumstances_ = false;
  // The config that most keys used before a change of the fabric stays in use in most steps, from the version
  // that answers the change on.
  const bool goes_on = regime_changed() && used_before_;
  // An arm that was much too slow is replaced at once.
  const bool opens = (adopt && (begins || common_.began())) || reason == GuardReason::kArmTooSlow;
  if (goes_on || (opens && CreditNs() > 0)) proposed_common_.Refill(experiment_);
  const bool rests = reason == GuardReason::kBudgetSpent || (resting_ && !begins);
  if (!proposed_winner_ && reason != GuardReason::kStepsChanged)
    plan.common = proposed_common_.Next(experiment_, !rests);
  if (plan.common.empty()) {
    for (KeyPlan& entry : plan.keys) entry.joins = false;
    return;
  }
  plan.common_spacing = CommonSpacing(plan.common);
  const auto leader = proposed_common_.Leader(experiment_);
  if (!leader || plan.common.front() != *leader) return;
  plan.common_pause = PauseOf(*leader);
  plan.common_spacing = ChallengerSpacing(plan.common);
}

KeySearch::SeenOf Guard::SeenBeside(const GuardedKey& key, const CollectiveConfig& choice) const {
  return [this, code = KeyCode(key.key()), choice](const CollectiveConfig& config) {
    return experiment_.Seen(code, config, choice);
  };
}

double Guard::StepNs() const {
  return experiment_.step_ns() > 0 ? experiment_.step_ns() : static_cast<double>(steps_.step_ns());
}

// Steps show the savings of each key's choice only after some time. Until then, the gain of the commonly
// adopted choice is used.
double Guard::SavedNs() const {
  const double together_ns = CommonGain() * static_cast<double>(newest_ns_ - common_from_ns_);
  return saved_before_ns_ + std::max(experiment_.saved_ns(), together_ns);
}

double Guard::CreditNs() const {
  if (searching_from_ns_ < 0) return 0;
  const auto steps_ns = static_cast<double>(newest_ns_ - searching_from_ns_);
  return credit_steps_ * StepNs() + kProbingBudget * steps_ns + kProbingOfSavings * SavedNs() -
         lost_before_ns_ - experiment_.lost_ns();
}

double Guard::ShareOf(const GuardedKey& key) const {
  const auto bytes = static_cast<double>(LowerBound(key.key().size_class));
  return static_cast<double>(key.calls()) * bytes / std::max(bytes_, 1.0);
}

double Guard::ExpectedLoss(const GuardedKey& key, const KeyPlan& entry) const {
  // Once all keys have adopted a config together, most other configs are likely as slow as NCCL's choice.
  const double unknown =
      std::max(kUnknownLoss * std::min(1.0, kSharesOfWhole * ShareOf(key)), CommonGain() * ShareOf(key));
  double sum = 0;
  for (const CollectiveConfig& arm : entry.arms) {
    const SeenConfig seen = experiment_.Seen(KeyCode(entry.key), arm, entry.choice);
    sum += seen.steps > 0 ? seen.effect.likely_loss() : unknown;
  }
  return sum / static_cast<double>(entry.arms.size());
}

double Guard::Pace() const {
  const bool hurries = CreditNs() > StepNs() && !common_choice_;
  return hurries ? kFastPace : kUsualPace;
}

uint16_t Guard::CommonSpacing(const std::vector<CollectiveConfig>& arms) const {
  const double pace = experiment_.blocks_since_arms() < kHurriedBlocks ? Pace() : kUsualPace;
  const double loss = LossTogether(arms, kLeaveNcclAlone, kUnknownLossTogether);
  return static_cast<uint16_t>(std::clamp(std::ceil(loss / pace), kLeastSpacing, kMaxSpacing));
}

// Most challengers are likely as slow as NCCL's choice. The leader's gain pays for them.
uint16_t Guard::ChallengerSpacing(const std::vector<CollectiveConfig>& leader_first) const {
  const CollectiveConfig& leader = leader_first.front();
  const double unknown = std::max(kUnknownLossTogether, -proposed_common_.Known(leader, experiment_).mean);
  const double loss = LossTogether({leader_first.begin() + 1, leader_first.end()}, leader, unknown);
  return static_cast<uint16_t>(std::clamp(std::ceil(loss / kFastPace), kLeastChallengerSpacing, kMaxSpacing));
}

// The first use of a config sets up connections, so it is ignored unless its step was fast all the same.
double Guard::LossTogether(const std::vector<CollectiveConfig>& arms, const CollectiveConfig& other,
                           double unknown) const {
  double loss = 0;
  for (const CollectiveConfig& arm : arms) {
    const SeenConfig seen = experiment_.Seen(kAllKeys, arm, other);
    const bool is_known = seen.steps > 1 || seen.effect.mean < -kFastFirstUse * seen.effect.error;
    loss += (is_known ? seen.effect.likely_loss() : unknown) / static_cast<double>(arms.size());
  }
  return loss;
}

// On average at most one key in a step uses a config that no step has used before.
void Guard::PaceArms(TablePlan& plan) const {
  double loss = 0, risky = 0;
  for (const KeyPlan& entry : plan.keys) {
    if (entry.arms.empty() || WatchesOnly(entry)) continue;
    loss += ExpectedLoss(keys_.at(KeyCode(entry.key)), entry);
    risky += std::any_of(entry.arms.begin(), entry.arms.end(), [&](const CollectiveConfig& arm) {
      return experiment_.Seen(KeyCode(entry.key), arm, entry.choice).steps == 0;
    });
  }
  const auto spacing = static_cast<uint16_t>(
      std::clamp(std::max(std::ceil(loss / Pace()), risky), kLeastSpacing, kMaxSpacing));
  for (KeyPlan& entry : plan.keys) {
    entry.spacing = spacing;
    if (!WatchesOnly(entry)) continue;
    entry.spacing = proves_again_ && !IsProved(entry) ? kProvingSpacing : kWatchSpacing;
  }
}

bool Guard::IsProved(const KeyPlan& entry) const {
  const SeenConfig nccl = experiment_.Seen(KeyCode(entry.key), kLeaveNcclAlone, entry.choice);
  return IsNcclsSlower(entry) || (nccl.steps > 0 && nccl.effect.error < kKnownError);
}

bool Guard::ProvesNeedlessly() const {
  return proves_again_ && std::any_of(plan_.keys.begin(), plan_.keys.end(), [this](const KeyPlan& entry) {
           return WatchesOnly(entry) && entry.spacing == kProvingSpacing && IsProved(entry);
         });
}

bool Guard::StepsCanProve(const GuardedKey& key) const {
  return has_steps() && key.proven() && !key.choice().leaves_nccl_alone() && !key.captured() &&
         ShareOf(key) >= options_.least_share;
}

bool Guard::CanSearch(const GuardedKey& key) const {
  if (!has_steps() || key.captured() || !key.search().has_candidates()) return false;
  if (settled_.contains(KeyCode(key.key()))) return false;
  const bool judged =
      key.choice().leaves_nccl_alone() || key.proven() || key.calls_of_choice() >= kDenseCalls;
  return judged && ShareOf(key) >= options_.least_share;
}

}  // namespace dynamiccl
