// SPDX-License-Identifier: Apache-2.0
// Says how the guard notices a change of the fabric, what it then forgets, and which choices are settled in
// which state of the fabric.
#include <algorithm>
#include <cmath>
#include <utility>

#include "src/decision/guard/guard.h"

namespace dynamiccl {
namespace {

// If times of calls and times of whole steps show a change at most this many steps apart, it is the same
// change.
constexpr double kStepsOfOneChange = 64;

// The effect of a change on steps is judged after this many blocks of steps, when a burst of traffic would be
// over.
constexpr uint32_t kBlocksToConfirm = 2;
// log(1.1): a smaller change of the step time does not renew the credit. Times of calls have the same limit
// (timing_detector.cc).
constexpr double kLeastChange = 0.0953;

// A config counts as the one that most keys use if keys with this share of the bytes use it.
constexpr double kMostUsed = 0.5;
// The least gain that such a config is believed to have on the changed fabric, and the standard error of the
// belief, both in logs. Steps outweigh a belief with this error after two or three uses.
constexpr double kLeastBelieved = 0.05;
constexpr double kErrorAfterChange = 0.2;

// Returns the number of the call's stream. A stream holds calls that should take equally long: one key and
// one config. The number is never 0.
uint64_t StreamOf(const GuardedCall& call) {
  const CollectiveConfig& config = call.config;
  return uint64_t{1} << 48 | uint64_t{KeyCode(call.key)} << 24 |
         uint64_t{static_cast<uint8_t>(config.algorithm)} << 16 |
         uint64_t{static_cast<uint8_t>(config.protocol)} << 8 | config.channels;
}

}  // namespace

void Guard::Detect(const GuardedCall& call) {
  pace_.Take(call.use == CallUse::kTrial ? 0 : StreamOf(call), call.at_ns);
  if (call.transfer_ns <= 0 || call.captured || call.use == CallUse::kTrial) return;
  const double transfer = static_cast<double>(call.transfer_ns);
  TimedSample sample;
  sample.stream = StreamOf(call);
  sample.at_ns = call.at_ns;
  sample.log_transfer = std::log(transfer);
  sample.is_usual = !call.on_suspicion;
  if (call.skew_ns >= 0) sample.log_skew = std::log1p(static_cast<double>(call.skew_ns) / transfer);
  detector_.SetLeastSpan(std::min(kVerifiedNs, kVerifiedSteps * steps_.step_ns()));
  const auto change = detector_.Take(sample);
  // No choice makes ranks arrive late, so late ranks are no change of the fabric.
  if (!change || !change->of_fabric) return;
  if (std::exchange(changed_by_steps_, false) && HasJustChanged()) {
    // Steps have already shown this change, and now its kind is known. What was settled before the change
    // belongs to the former state of the fabric until Relearn is called.
    if (!regime_changed()) fabric_of_keys_ = fabric();
    return;
  }
  if (StepsJudgeAll() && step_witness_.Suspect()) return;
  NoteChange(call.at_ns);
}

void Guard::NoteChange(int64_t at_ns) {
  changed_ns_ = at_ns;
  ++regime_changes_;
}

// Steps may confirm or refute a change only if they judge every choice. A choice that only its calls' times
// have judged must not wait for steps.
bool Guard::StepsJudgeAll() const {
  return has_steps() && std::all_of(keys_.begin(), keys_.end(), [](const auto& each) {
           const GuardedKey& key = each.second;
           return key.choice().leaves_nccl_alone() || key.proven() || key.drawn();
         });
}

void Guard::DetectBySteps(const GuardedCall& call, double log_step_ns) {
  if (std::exchange(clock_changes_, experiment_.clock_changes()) != experiment_.clock_changes()) {
    step_watch_.Forget();
    step_witness_.Forget();
  }
  // While ranks are late, steps take longer whatever the choices are.
  if (detector_.regime() == Regime::kStraggler) return;
  if (const auto felt = step_witness_.Take(log_step_ns)) {
    if (*felt)
      NoteChange(call.at_ns);
    else
      detector_.Refute();
  }
  const auto longer = step_watch_.Take(log_step_ns, call.at_ns);
  if (!longer) return;
  step_witness_.Forget();
  RenewCredit(experiment_.grid().calls, *longer);
  // Times of calls have shown this change already.
  if (!changed_by_steps_ && HasJustChanged()) return;
  changed_by_steps_ = true;
  NoteChange(call.at_ns);
}

bool Guard::HasJustChanged() const {
  return changed_ns_ >= 0 && static_cast<double>(newest_ns_ - changed_ns_) < kStepsOfOneChange * StepNs();
}

void Guard::ConfirmChange() {
  if (usual_before_ns_ == 0 || experiment_.blocks() < kBlocksToConfirm) return;
  const double longer = experiment_.step_ns() / std::exchange(usual_before_ns_, 0);
  if (std::abs(std::log(longer)) >= kLeastChange) RenewCredit(experiment_.grid().calls, longer);
}

// Trials cost more after a change that slows all steps down, and there is more to win. A trial in a step in
// which the fabric fails is also charged with the failure, so a debt from before the change does not count.
void Guard::RenewCredit(uint64_t calls_of_step, double longer) {
  if (newest_call_ - credited_call_ < kStepsBetweenCredits * calls_of_step) return;
  const double debt_steps = std::max(0.0, -CreditNs() / std::max(StepNs(), 1.0));
  const double to_win_back = kStepsBetweenCredits * std::max(0.0, 1 - 1 / longer);
  credit_steps_ += debt_steps + kProbingCreditSteps + kProbingOfSavings * to_win_back;
  credited_call_ = newest_call_;
}

// A choice that steps have found to be good counts as settled even while the key's search goes on, because
// the job may end before the search.
std::vector<SettledKey> Guard::SettledNow() const {
  std::vector<SettledKey> settled;
  for (const auto& [code, key] : keys_) {
    const auto ended = settled_.find(code);
    // Right after all keys adopted a config together, there are no effects of single keys yet. The common
    // effect then counts.
    const bool together = key.proven() && key.choice() == common_choice_;
    SeenConfig seen = experiment_.Seen(code, key.choice(), kLeaveNcclAlone);
    if (together && seen.steps == 0) seen = common_seen_;
    const bool by_steps =
        !key.choice().leaves_nccl_alone() && (key.drawn() || together) && key.proven() && seen.steps > 0;
    if (key.captured() || (ended == settled_.end() && !by_steps)) continue;
    const bool by_earlier_run = ended != settled_.end() && ended->second;
    SettledKey one{key.key(), fabric_of_keys_, key.choice(), key.Ratio(), key.pairs(), by_earlier_run};
    if (by_steps) {
      one.ratio = std::exp(seen.effect.mean);
      one.pairs = seen.steps;
    }
    settled.push_back(one);
  }
  return settled;
}

std::vector<SettledKey> Guard::AllSettled() const {
  auto latest = settled_before_;
  // Until the guard knows what kind of change happened, it cannot tell to which state of the fabric the
  // present choices belong, so it leaves these choices out.
  const std::vector<SettledKey> now =
      changed_by_steps_ && HasJustChanged() ? std::vector<SettledKey>{} : SettledNow();
  for (const SettledKey& settled : now)
    latest.insert_or_assign(std::pair(KeyCode(settled.key), settled.fabric), settled);
  std::vector<SettledKey> all;
  for (const auto& [code_and_fabric, settled] : latest) all.push_back(settled);
  return all;
}

// Choices that an earlier run confirmed stay settled, because steps compare them with NCCL's own choice all
// the time.
void Guard::Reopen(uint64_t calls_of_step) {
  for (const SettledKey& settled : SettledNow())
    settled_before_.insert_or_assign(std::pair(KeyCode(settled.key), settled.fabric), settled);
  std::erase_if(settled_, [](const auto& each) { return !each.second; });
  const bool has_choices = std::any_of(
      keys_.begin(), keys_.end(), [](const auto& each) { return !each.second.choice().leaves_nccl_alone(); });
  common_.Restart();
  if (has_choices) common_.End();
  RenewCredit(calls_of_step, 1);
}

bool Guard::StepsFelt() const {
  if (changed_by_steps_) return true;
  const double usual_ns = experiment_.usual_ns();
  return usual_ns > 0 && std::abs(std::log(experiment_.step_ns() / usual_ns)) >= kLeastChange;
}

// If all keys adopted the config together, the effect is the one that steps then showed. Otherwise it is the
// sum of the config's effects on the keys. An effect from before the change says little about the changed
// fabric, so the belief's error is large.
std::optional<Belief> Guard::MostUsed() const {
  const auto share_of = [this](const CollectiveConfig& config) {
    double share = 0;
    for (const auto& [code, key] : keys_) share += key.choice() == config ? ShareOf(key) : 0;
    return share;
  };
  const auto most = std::find_if(keys_.begin(), keys_.end(), [&](const auto& each) {
    const GuardedKey& key = each.second;
    return StepsCanProve(key) && key.search().has_candidates() && share_of(key.choice()) >= kMostUsed;
  });
  if (most == keys_.end()) return std::nullopt;
  const CollectiveConfig config = most->second.choice();
  double effect = common_choice_ == config ? common_seen_.effect.mean : 0;
  for (const auto& [code, key] : keys_) {
    if (common_choice_ != config && key.choice() == config)
      effect -= experiment_.Seen(code, kLeaveNcclAlone, config).effect.mean;
  }
  return Belief{config, {std::min(effect, -kLeastBelieved), kErrorAfterChange}, ExpectedFrom::kBeforeChange};
}

// Settled choices are kept in case the fabric returns to its former state. The version in use stays until
// another is committed.
void Guard::Relearn() {
  for (const SettledKey& settled : SettledNow())
    settled_before_.insert_or_assign(std::pair(KeyCode(settled.key), settled.fabric), settled);
  fabric_of_keys_ = fabric();
  changed_circumstances_ |= common_.circumstances().has_value();
  // If a proposal fails, Relearn is called again at once. By then the effects from before the change are
  // forgotten, so the first call's result is kept.
  if (!used_before_ && StepsFelt()) used_before_ = MostUsed();
  settled_.clear();
  confirmed_.clear();
  for (auto& [code, key] : keys_) {
    key.Restart();
    key.search().SetCandidates(knowledge_(key.key(), fabric()).candidates);
  }
  if (KeysThatJoin().empty()) used_before_.reset();
  common_.Restart();
  // Without a config that most keys use, the experiment proves each key's choice again beside NCCL's own.
  const auto is_proved_again = [this](const auto& each) {
    const GuardedKey& key = each.second;
    return (key.drawn() && !key.choice().leaves_nccl_alone()) || StepsCanProve(key);
  };
  proves_again_ = !used_before_ && std::any_of(keys_.begin(), keys_.end(), is_proved_again);
  if (proves_again_) common_.End();
  // Keeps the usual step time from before the change. If a proposal fails, Relearn is called again before the
  // experiment has seen a step; then the kept time must not be overwritten with 0.
  if (experiment_.usual_ns() > 0) usual_before_ns_ = experiment_.usual_ns();
  BeginExperiment(experiment_.grid(), newest_ns_);
}

}  // namespace dynamiccl
