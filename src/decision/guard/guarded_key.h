// SPDX-License-Identifier: Apache-2.0
// One key under the guard: what it uses, what is being tried on it, and what both cost compared with NCCL's
// choice.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/decision/guard/betting_capital.h"
#include "src/decision/guard/guarded_call.h"
#include "src/decision/guard/key_account.h"
#include "src/decision/guard/paired_times.h"
#include "src/policy/probe_candidates.h"

namespace dynamiccl {

// A trial above so many times its predicted time is never repeated, unless three pairs speak for it.
inline constexpr double kBarredTimes = 3;
// Probability that an adoption is wrong, and that a revocation by samples is.
inline constexpr double kWrongAdoption = 1e-3;
inline constexpr double kWrongRevocation = 1e-3;
// Differences in logs are winsorised to this, and smaller ones than kLeastGain are not worth a change.
inline constexpr double kWinsorisedRatio = 0.2;
inline constexpr double kLeastGain = 0.005;
// Those of trials more: a test of values between narrow bounds needs fewer of them for a small gain, and no
// more for a large one.
inline constexpr double kWinsorisedTrial = 0.1;

struct Trial {
  enum class State : uint8_t { kOpen, kBetter, kFutile, kBarred };
  ProbeCandidate candidate;
  PairedTimes pairs;
  BettingTest better;
  // Of log(trial / choice), winsorised far out only: how good it is, where `better` says that it is.
  double ratio_sum = 0;
  // The same, winsorised to kWinsorisedRatio.
  double near_sum = 0;
  uint32_t timed = 0;
  double mean() const { return better.count() == 0 ? 0 : ratio_sum / better.count(); }
  double near_mean() const { return better.count() == 0 ? 0 : near_sum / better.count(); }
  bool goes_on() const { return state == State::kOpen || state == State::kBetter; }
  State state = State::kOpen;

  explicit Trial(const ProbeCandidate& tried);
};

class GuardedKey {
 public:
  explicit GuardedKey(const TableKey& key) : key_(key) {}

  // The version in use has this choice for the key, and these of the candidates as trials.
  void Use(const CollectiveConfig& choice, const std::vector<CollectiveConfig>& trials);
  // Replaces what may be tried; trials under way go on.
  void SetCandidates(std::vector<ProbeCandidate> candidates) { candidates_ = std::move(candidates); }
  void Take(const GuardedCall& call);
  // The fabric is another one: times, tests and bars of before say nothing.
  void Restart();

  const TableKey& key() const { return key_; }
  const CollectiveConfig& choice() const { return choice_; }
  const KeyAccount& account() const { return account_; }
  const std::vector<ProbeCandidate>& candidates() const { return candidates_; }
  uint32_t calls() const { return calls_; }
  uint32_t timed() const { return timed_; }
  bool captured() const { return captured_; }
  size_t trials() const { return trials_.size(); }
  bool searching() const { return !trials_.empty(); }
  // The choice is not NCCL's and costs more than allowed, or is slower than NCCL's by the paired samples, or
  // is unproven and they do not speak for it.
  bool MustRevoke() const;
  // The choice was measured to be better, by this run's trials or by an earlier run's: some pairs against it
  // do not end it. It holds until the choice changes.
  void SetProven() { proven_ = true; }
  // Calls of several times NCCL's time on end: too slow even where the program does not wait.
  bool IsGross() const { return !choice_.leaves_nccl_alone() && account_.IsGross(); }
  // The version's dense samples are made, and by the paired ones the choice loses, though not surely: it is
  // worth a version that takes dense ones again, which costs nothing where it does lose. Ends by itself where
  // it does not: the mean of more pairs is nearer to none.
  bool InDoubt() const;
  // Trials that may still be made; fewer than are in use where one ended.
  std::vector<CollectiveConfig> OpenTrials() const;
  // What may be tried in a version with this choice: what was made before and was not too slow, then the
  // rest, the best of each first.
  std::vector<CollectiveConfig> TrialsBeside(const CollectiveConfig& choice) const;
  // How many of these were made before, on whatever fabric, and were never too slow.
  uint8_t KnownOf(const std::vector<CollectiveConfig>& trials) const;
  // A trial is barred and still in use.
  bool MustStopTrial() const;
  // The best of the trials, once it is shown to be better than the choice.
  const Trial* Winner() const;
  // Nothing is tried but what is shown to be better: it costs nothing to go on.
  bool only_winner_left() const { return trials_.size() == 1 && Winner() != nullptr; }
  // What these may cost a call each, in nanoseconds, from their predictions and what they showed. Never
  // little before they showed it.
  double TrialCostNs(const std::vector<CollectiveConfig>& trials) const;
  // Share of the choice's time that the best of them may save.
  double MayGain(const std::vector<CollectiveConfig>& trials) const;
  bool search_ended() const;
  // Each of them was made at least once beside this choice.
  bool AllMade(const std::vector<CollectiveConfig>& trials) const;
  // Time of the choice over NCCL's, by the paired samples of this span; nothing before there are some.
  std::optional<double> Ratio() const;
  uint32_t pairs() const { return slower_.count(); }
  // What this call took more than the choice takes; 0 where it is the choice, or that is not known.
  double ExcessOf(const GuardedCall& call) const;
  // The version in use compares the key by blocks of steps.
  bool in_blocks() const { return in_blocks_; }
  void SetInBlocks(bool in_blocks) { in_blocks_ = in_blocks; }
  // What trials have cost since the last question, in nanoseconds; below 0: they took less than the choice.
  double TakeTrialCost();
  // Calls since the choice last changed.
  uint32_t calls_of_choice() const { return calls_of_choice_; }

 private:
  void TakeUpTrial(const CollectiveConfig& config);
  double PredictedFor(const CollectiveConfig& config) const;
  double ChoiceNs() const;
  // What a call of it counts as at most.
  double MostOf(const CollectiveConfig& config) const;
  const TimeLevel& ChoiceLevel() const;
  const Trial* TrialOf(const CollectiveConfig& config) const;
  // Time over the choice's: as predicted, then as seen.
  double RatioOf(const CollectiveConfig& config) const;
  void TakeTrial(const CollectiveConfig& config, double ns);
  void TakeCompared(const GuardedCall& call, double log_time);
  bool IsTooSlow(const Trial& trial, double ns) const;
  static void TakePair(Trial& trial, double ratio);
  void EndHopeless();
  void RestartComparison();
  bool IsBarred(const CollectiveConfig& config) const;
  bool IsHarmless(const CollectiveConfig& config) const;
  void Bar(const CollectiveConfig& config);

  TableKey key_;
  CollectiveConfig choice_;
  std::vector<ProbeCandidate> candidates_;
  std::vector<Trial> trials_;
  std::vector<Trial> resting_;  // of an earlier version with this choice: they go on where they were
  std::vector<CollectiveConfig> barred_;
  std::vector<CollectiveConfig>
      harmless_;  // made or the choice, and never too slow; a change of the fabric does not end it
  KeyAccount account_;
  PairedTimes pairs_;                                  // NCCL's samples with the choice
  BettingTest slower_{-kLeastGain, kWinsorisedRatio};  // of log(NCCL's / choice)
  int doubts_ = 0;                                     // of this choice
  uint32_t calls_ = 0;
  uint32_t calls_of_version_ = 0;
  uint32_t calls_of_choice_ = 0;
  uint32_t timed_ = 0;
  bool captured_ = false;
  bool proven_ = false;
  bool in_blocks_ = false;
  double trial_cost_ns_ = 0;
};

}  // namespace dynamiccl
