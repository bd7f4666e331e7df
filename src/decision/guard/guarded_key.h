// SPDX-License-Identifier: Apache-2.0
// One key under the guard: the choice that it uses, what its calls cost compared with NCCL's own choice, and
// the search for a better one.
//
// Outside of experiments a sample of NCCL's choice is paired with calls of the key's choice close to it
// (paired_times.h); each pair adds log(NCCL's / the choice's) to a test that may be looked at after every
// value (betting_capital.h). While the key takes part in an experiment, whole steps judge it
// (step_experiment.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/decision/guard/betting_capital.h"
#include "src/decision/guard/guarded_call.h"
#include "src/decision/guard/key_account.h"
#include "src/decision/guard/key_search.h"
#include "src/decision/guard/paired_times.h"

namespace dynamiccl {

// Probability that a revocation by paired samples is wrong, for each choice over all looks at it.
inline constexpr double kWrongRevocation = 1e-3;
// Differences in logs are limited to this much either way, so that one stall weighs no more than a call of
// 1.22 times the time. The betting test needs bounded values.
inline constexpr double kWinsorisedRatio = 0.2;
// The test asks whether NCCL's choice is faster by more than this in logs: 0.5 % is not worth a change.
inline constexpr double kLeastLoss = 0.005;

// What the guard knows about one key. The Guard owns it, on the leader's control thread. Calls are passed in
// in their order; the class proposes nothing and only answers what the samples say. It cannot fail.
class GuardedKey {
 public:
  explicit GuardedKey(const TableKey& key) : key_(key) {}

  // The version in use now has this choice for the key. `drawn`: it also has arms, drawn by steps.
  void Use(const CollectiveConfig& choice, bool drawn);
  // Adds a call of this key. A call of an older version's choice is counted but not judged.
  void Take(const GuardedCall& call);
  // The fabric changed: times and tests are void. The search is restarted by itself.
  void Restart();

  const TableKey& key() const { return key_; }
  const CollectiveConfig& choice() const { return choice_; }
  const KeyAccount& account() const { return account_; }
  KeySearch& search() { return search_; }
  const KeySearch& search() const { return search_; }
  // Calls so far.
  uint32_t calls() const { return calls_; }
  // Calls of the key since its choice last changed.
  uint32_t calls_of_choice() const { return calls_of_choice_; }
  // True once a call of the key was captured into a CUDA graph.
  bool captured() const { return captured_; }
  // True if the version in use draws the key's configs by steps.
  bool drawn() const { return drawn_; }
  // The choice is not NCCL's and must go: its account is overspent, or paired samples show it to be slower,
  // or nobody measured it before and the pairs do not speak for it.
  bool MustRevoke() const;
  // Declares the choice to be measured, by this run's steps or by an earlier run. A few pairs against it do
  // not end it then. It holds until the choice changes.
  void SetProven() { proven_ = true; }
  bool proven() const { return proven_; }
  // The last four timed calls were all several times slower than NCCL's: too slow even if the program does
  // not wait for them.
  bool IsGross() const { return !choice_.leaves_nccl_alone() && account_.IsGross(); }
  // The version's dense samples are made, and the pairs say that the choice loses, though not surely. A new
  // version with dense samples is then worth its price: samples of NCCL's choice cost nothing where the
  // choice loses. Doubt ends by itself where it does not lose, because more pairs bring their mean nearer to
  // 0.
  bool InDoubt() const;
  // Time of the choice over NCCL's by the paired samples since the choice or the fabric changed; nothing
  // before the first pair, and for NCCL's own choice.
  std::optional<double> Ratio() const;
  uint32_t pairs() const { return slower_.count(); }
  // Nanoseconds that this call took more than the choice takes on average. It is 0 for calls of the choice
  // and where either time is not known.
  double ExcessOf(const GuardedCall& call) const;

 private:
  const TimeLevel& ChoiceLevel() const;
  // Pairs a timed call with those beside it.
  void TakeCompared(const GuardedCall& call, double log_time);
  void RestartComparison();

  TableKey key_;
  CollectiveConfig choice_;
  KeySearch search_;
  KeyAccount account_;
  PairedTimes pairs_;  // samples of NCCL's choice beside calls of the choice
  // Tests log(NCCL's time / the choice's): a mean below -kLeastLoss says that NCCL's choice is faster.
  BettingTest slower_{-kLeastLoss, kWinsorisedRatio};
  int doubts_ = 0;  // versions that began in doubt of this choice
  uint32_t calls_ = 0;
  uint32_t calls_of_version_ = 0;
  uint32_t calls_of_choice_ = 0;
  bool captured_ = false;
  bool proven_ = false;
  bool drawn_ = false;
};

}  // namespace dynamiccl
