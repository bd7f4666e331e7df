// SPDX-License-Identifier: Apache-2.0
// One key under the guard: the choice that it uses, the candidates that are being tried on it, and what both
// cost compared with NCCL's own choice.
//
// All comparisons use logs of times. A pair is one call of a trial (or a sample of NCCL's choice) beside
// calls of the key's choice close to it (paired_times.h); each pair adds log(rare / common) to a test that
// may be looked at after every value (betting_capital.h). Means of logs are ratios: -0.05 is 5 % faster.
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

// A trial that takes more than this many times its predicted time is never repeated, unless three pairs speak
// for it: then one slow call is the fabric's fault (docs/guard.md).
inline constexpr double kBarredTimes = 3;
// Probability that an adoption is wrong, for each trial over all looks at it: the 1/1000 that docs/guard.md
// promises.
inline constexpr double kWrongAdoption = 1e-3;
// The same for a revocation by paired samples, for each choice.
inline constexpr double kWrongRevocation = 1e-3;
// Differences in logs are limited to this much either way, so that one stall weighs no more than a call of
// 1.22 times the time. The betting test needs bounded values.
inline constexpr double kWinsorisedRatio = 0.2;
// Differences in logs below 0.5 % are not worth a change: the tests ask whether a trial is faster, or NCCL's
// choice is, by more than this.
inline constexpr double kLeastGain = 0.005;
// The limit for trials is narrower: a test of values between narrow bounds needs fewer of them for a small
// gain, and no more for a large one.
inline constexpr double kWinsorisedTrial = 0.1;

// One candidate that is being tried on a key, with all pairs that were made of it beside the present choice.
// A value that GuardedKey owns.
struct Trial {
  // kOpen: the pairs give no answer yet. kBetter: faster than the choice, wrong with probability
  // kWrongAdoption. kFutile: not worth more calls. kBarred: too slow to be repeated.
  enum class State : uint8_t { kOpen, kBetter, kFutile, kBarred };
  ProbeCandidate candidate;
  PairedTimes pairs;
  // Tests that the mean of log(trial / choice) lies below -kLeastGain.
  BettingTest better;
  // Sum of log(trial / choice), limited to a factor of e only. It ranks the trials that `better` found to be
  // faster; the test's own limit would make large gains look alike.
  double ratio_sum = 0;
  // The same sum, limited to kWinsorisedRatio. It finds trials that are no gain, where one stall must not
  // count much.
  double near_sum = 0;
  // Timed calls, the first one included, which makes no pair because it also sets up connections.
  uint32_t timed = 0;
  // Mean log ratios of the pairs, 0 without any.
  double mean() const { return better.count() == 0 ? 0 : ratio_sum / better.count(); }
  double near_mean() const { return better.count() == 0 ? 0 : near_sum / better.count(); }
  // True if the trial may be made again.
  bool goes_on() const { return state == State::kOpen || state == State::kBetter; }
  State state = State::kOpen;

  explicit Trial(const ProbeCandidate& tried);
};

// What the guard knows about one key. The Guard owns it, on the leader's control thread. Calls are passed in
// in their order; the class proposes nothing and only answers what the samples say. It cannot fail.
//
// It has more than 30 methods because the guard asks many small questions of the same samples; the answers
// share all of its state.
class GuardedKey {
 public:
  explicit GuardedKey(const TableKey& key) : key_(key) {}

  // The version in use now has this choice for the key and these candidates as trials. Trials that were in
  // use before with the same choice go on from where they were; another choice makes them void.
  void Use(const CollectiveConfig& choice, const std::vector<CollectiveConfig>& trials);
  // Replaces the candidates for later trials. Trials in use go on.
  void SetCandidates(std::vector<ProbeCandidate> candidates) { candidates_ = std::move(candidates); }
  // Adds a call of this key. A call of an older version's choice is counted but not judged.
  void Take(const GuardedCall& call);
  // The fabric changed: times, tests and bars of before are void. Configs that did no harm are remembered.
  void Restart();

  const TableKey& key() const { return key_; }
  const CollectiveConfig& choice() const { return choice_; }
  const KeyAccount& account() const { return account_; }
  const std::vector<ProbeCandidate>& candidates() const { return candidates_; }
  // Calls, and calls with a time, which start again at 0 after Restart.
  uint32_t calls() const { return calls_; }
  uint32_t timed() const { return timed_; }
  // True once a call of the key was captured into a CUDA graph.
  bool captured() const { return captured_; }
  size_t trials() const { return trials_.size(); }
  bool searching() const { return !trials_.empty(); }
  // The choice is not NCCL's and must go. Its account is overspent, or paired samples show it to be slower,
  // or nobody measured it before and the pairs do not speak for it.
  bool MustRevoke() const;
  // Declares the choice to be measured, by this run's trials or by an earlier run. A few pairs against it do
  // not end it then. It holds until the choice changes.
  void SetProven() { proven_ = true; }
  // The last four timed calls were all several times slower than NCCL's: too slow even if the program does
  // not wait for them.
  bool IsGross() const { return !choice_.leaves_nccl_alone() && account_.IsGross(); }
  // The version's dense samples are made, and the pairs say that the choice loses, though not surely. A new
  // version with dense samples is then worth its price: samples of NCCL's choice cost nothing where the
  // choice loses. Doubt ends by itself where it does not lose, because more pairs bring their mean nearer to
  // 0.
  bool InDoubt() const;
  // Candidates that may still be tried beside the present choice; fewer than are in use where a trial ended.
  std::vector<CollectiveConfig> OpenTrials() const;
  // Candidates that may be tried beside `choice`, at most kMaxTrials. Configs that did no harm before come
  // first; both groups are in the order of the candidates, best first.
  std::vector<CollectiveConfig> TrialsBeside(const CollectiveConfig& choice) const;
  // How many of `trials`, from the first on, were made before on any fabric and were never too slow.
  uint8_t KnownOf(const std::vector<CollectiveConfig>& trials) const;
  // True while a barred trial is still in use.
  bool MustStopTrial() const;
  // The fastest trial that goes on, if it was shown to be faster than the choice; else null. The pointer is
  // valid until the next call of a function that is not const.
  const Trial* Winner() const;
  // True when the winner alone is being tried, which costs nothing.
  bool only_winner_left() const { return trials_.size() == 1 && Winner() != nullptr; }
  // Nanoseconds that a call of one of `trials` is expected to lose on average, from predictions and pairs. A
  // trial without pairs counts as a loss of at least 30 %.
  double TrialCostNs(const std::vector<CollectiveConfig>& trials) const;
  // The largest share of the choice's time that one of `trials` may save, at least 5 %.
  double MayGain(const std::vector<CollectiveConfig>& trials) const;
  // True if no trial in use is open.
  bool search_ended() const;
  // True if each of `trials` was called at least once beside this choice, or is barred.
  bool AllMade(const std::vector<CollectiveConfig>& trials) const;
  // Time of the choice over NCCL's by the paired samples since the choice or the fabric changed; nothing
  // before the first pair, and for NCCL's own choice.
  std::optional<double> Ratio() const;
  uint32_t pairs() const { return slower_.count(); }
  // Nanoseconds that this call took more than the choice takes on average. It is 0 for calls of the choice
  // and where either time is not known.
  double ExcessOf(const GuardedCall& call) const;
  // True if the version in use compares the key by blocks of steps.
  bool in_blocks() const { return in_blocks_; }
  void SetInBlocks(bool in_blocks) { in_blocks_ = in_blocks; }
  // Returns what trials have cost since the last call of this function, in nanoseconds, and sets it to 0.
  // Below 0: they took less than the choice would have.
  double TakeTrialCost();
  // Calls of the key since its choice last changed.
  uint32_t calls_of_choice() const { return calls_of_choice_; }

 private:
  // Brings back a resting trial of this config, or begins a new one.
  void TakeUpTrial(const CollectiveConfig& config);
  // Predicted time over NCCL's; 1 for a config that is no candidate.
  double PredictedFor(const CollectiveConfig& config) const;
  // Mean time of the choice in nanoseconds, or NCCL's where the choice has no times yet.
  double ChoiceNs() const;
  // The most that a call of a trial may count as cost, in nanoseconds: without a limit before its first pair.
  double MostOf(const CollectiveConfig& config) const;
  const TimeLevel& ChoiceLevel() const;
  // The trial of this config, in use or resting; null if there is none.
  const Trial* TrialOf(const CollectiveConfig& config) const;
  // Expected time of a trial over the choice's: the prediction first, then the pairs.
  double RatioOf(const CollectiveConfig& config) const;
  // Adds a timed call of a trial, or a timed call that trials and the choice are compared by.
  void TakeTrial(const CollectiveConfig& config, double ns);
  void TakeCompared(const GuardedCall& call, double log_time);
  // True if this call bars the trial.
  bool IsTooSlow(const Trial& trial, double ns) const;
  static void TakePair(Trial& trial, double ratio);
  // Ends trials that another trial has left behind.
  void EndHopeless();
  void RestartComparison();
  // A config is barred until the fabric changes, harmless until it is barred.
  bool IsBarred(const CollectiveConfig& config) const;
  bool IsHarmless(const CollectiveConfig& config) const;
  void Bar(const CollectiveConfig& config);

  TableKey key_;
  CollectiveConfig choice_;
  std::vector<ProbeCandidate> candidates_;
  std::vector<Trial> trials_;
  // Trials of earlier versions with this choice that are not in use now; they may go on later.
  std::vector<Trial> resting_;
  std::vector<CollectiveConfig> barred_;
  // Configs that were in use and never too slow. A change of the fabric does not clear this list.
  std::vector<CollectiveConfig> harmless_;
  KeyAccount account_;
  PairedTimes pairs_;  // samples of NCCL's choice beside calls of the choice
  // Tests log(NCCL's time / the choice's): a mean below -kLeastGain says that NCCL's choice is faster.
  BettingTest slower_{-kLeastGain, kWinsorisedRatio};
  int doubts_ = 0;  // versions that began in doubt of this choice
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
