// SPDX-License-Identifier: Apache-2.0
// MustRevoke and InDoubt judge the choice by pairs: a sample of NCCL's choice and a call of the key's choice
// beside it.
#include "src/decision/guard/guarded_key.h"

#include <cmath>

namespace dynamiccl {
namespace {

// A choice is in doubt when 12 pairs or more show a mean loss of 3 %. Doubts about one choice begin at most
// 16 versions, so that an endless doubt does not produce versions endlessly (docs/guard.md).
constexpr uint32_t kDoubtPairs = 12;
constexpr double kDoubtedLoss = 0.03;
constexpr int kMaxDoubts = 16;
// A choice that nobody has measured is revoked when 16 pairs show a mean loss of 1 %, or 6 pairs one of 10 %
// (docs/guard.md). At 5 % noise this wrongly revokes a choice that saves 5 % once in 1,000 cases, and
// experiments can still find it again.
constexpr uint32_t kUnprovenPairs = 16;
constexpr double kUnprovenLoss = 0.01;
constexpr uint32_t kUnprovenBadPairs = 6;
constexpr double kUnprovenBad = 0.1;

}  // namespace

void GuardedKey::Use(const CollectiveConfig& choice, bool drawn) {
  // Many of the first calls of every version are samples, so this version answers a doubt about the choice.
  doubts_ += InDoubt() ? 1 : 0;
  calls_of_version_ = 0;
  drawn_ = drawn;
  if (choice == choice_) return;
  choice_ = choice;
  account_.Restart();
  RestartComparison();
  calls_of_choice_ = 0;
  proven_ = false;
}

void GuardedKey::Take(const GuardedCall& call) {
  ++calls_;
  ++calls_of_version_;
  ++calls_of_choice_;
  captured_ |= call.captured;
  if (call.use == CallUse::kTrial) return;
  // The call uses neither the present choice nor NCCL's: an older version decided the call, so the call says
  // nothing about the present choice.
  if (call.config != choice_ && !call.config.leaves_nccl_alone()) return;
  const bool is_timed = call.transfer_ns > 0 && !call.captured;
  const double ns = is_timed ? static_cast<double>(call.compared_ns()) : -1;
  const bool is_default = call.config.leaves_nccl_alone();
  if (call.on_suspicion && is_timed) {
    is_default ? account_.TakeDefault(-1) : account_.TakeChoiceOnSuspicion(ns);
    return;
  }
  is_default ? account_.TakeDefault(ns) : account_.TakeChoice(ns);
  if (is_timed && !drawn_) TakeCompared(call, std::log(ns));
}

void GuardedKey::TakeCompared(const GuardedCall& call, double log_time) {
  if (choice_.leaves_nccl_alone()) return;
  const bool is_default = call.config.leaves_nccl_alone();
  const auto ratio = is_default ? pairs_.TakeRare(log_time) : pairs_.TakeCommon(log_time);
  if (ratio) slower_.Add(*ratio);
}

const TimeLevel& GuardedKey::ChoiceLevel() const {
  return choice_.leaves_nccl_alone() ? account_.default_level() : account_.choice_level();
}

double GuardedKey::ExcessOf(const GuardedCall& call) const {
  const bool other = call.config != choice_ && call.use != CallUse::kChoice;
  if (!other || call.transfer_ns <= 0 || call.captured || ChoiceLevel().count() == 0) return 0;
  return static_cast<double>(call.compared_ns()) - ChoiceLevel().mean();
}

void GuardedKey::RestartComparison() {
  pairs_ = PairedTimes();
  slower_ = BettingTest(-kLeastLoss, kWinsorisedRatio);
  doubts_ = 0;
}

void GuardedKey::Restart() {
  account_.Restart();
  RestartComparison();
}

bool GuardedKey::MustRevoke() const {
  if (choice_.leaves_nccl_alone()) return false;
  const auto loses = [this](uint32_t pairs, double loss) {
    return slower_.count() >= pairs && slower_.mean() < -loss;
  };
  const bool in_vain =
      !proven_ && (loses(kUnprovenPairs, kUnprovenLoss) || loses(kUnprovenBadPairs, kUnprovenBad));
  return in_vain || account_.Overspent() || slower_.Below(kWrongRevocation);
}

bool GuardedKey::InDoubt() const {
  if (choice_.leaves_nccl_alone() || captured_ || drawn_) return false;
  if (calls_of_version_ < kMiddleCalls || doubts_ == kMaxDoubts) return false;
  return slower_.count() >= kDoubtPairs && slower_.mean() < -kDoubtedLoss;
}

std::optional<double> GuardedKey::Ratio() const {
  if (choice_.leaves_nccl_alone() || slower_.count() == 0) return std::nullopt;
  return std::exp(-slower_.mean());
}

}  // namespace dynamiccl
