// SPDX-License-Identifier: Apache-2.0
// One key under the guard: its choice, what its calls cost compared with NCCL's own choice, and the search
// for a better config.
//
// Outside of experiments a sample of NCCL's choice is paired with calls of the key's choice close in time
// (paired_times.h). Each pair adds log(NCCL's time / the choice's time) to a sequential test
// (betting_capital.h). While the key takes part in an experiment, whole steps judge it (step_experiment.h).
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

// Probability that paired samples ever revoke a given choice wrongly, over all looks at the test.
inline constexpr double kWrongRevocation = 1e-3;
// Log ratios are limited to this much either way, because the betting test needs bounded values. With the
// limit, a stalled call counts as at most 1.22 times the time of the other call of its pair.
inline constexpr double kWinsorisedRatio = 0.2;
// The test asks whether NCCL's choice is faster by more than this, in logs. A smaller loss than 0.5 % is not
// worth a change.
inline constexpr double kLeastLoss = 0.005;

// Keeps what the guard knows about one key. The Guard owns it, on the leader's control thread, and passes in
// the key's calls in their order. The class proposes nothing; it only answers what the samples show. It
// cannot fail.
class GuardedKey {
 public:
  explicit GuardedKey(const TableKey& key) : key_(key) {}

  // Tells the key the choice of the version now in use. `drawn`: the version also draws other configs for the
  // key by steps.
  void Use(const CollectiveConfig& choice, bool drawn);
  // Adds a call of this key. A call of an older version's choice is counted but not judged.
  void Take(const GuardedCall& call);
  // Forgets times and tests, because the fabric changed. The caller restarts search() separately.
  void Restart();

  const TableKey& key() const { return key_; }
  const CollectiveConfig& choice() const { return choice_; }
  const KeyAccount& account() const { return account_; }
  KeySearch& search() { return search_; }
  const KeySearch& search() const { return search_; }
  // Sets the time that NCCL's cost model predicts for NCCL's own choice, in nanoseconds.
  void Predict(double nccls_ns) { nccls_ns_ = nccls_ns; }
  double predicted_ns() const { return nccls_ns_; }  // 0: not known
  // Calls so far.
  uint32_t calls() const { return calls_; }
  // Calls of the key since its choice last changed.
  uint32_t calls_of_choice() const { return calls_of_choice_; }
  // True once a call of the key was captured into a CUDA graph.
  bool captured() const { return captured_; }
  // True if the version in use draws other configs for the key by steps.
  bool drawn() const { return drawn_; }
  // True if the choice is not NCCL's and must be revoked: its account is overspent, or paired samples show it
  // to be slower, or it is unproven and the pairs speak against it.
  bool MustRevoke() const;
  // Declares that this run's steps or an earlier run have measured the choice. A few pairs against it then do
  // not revoke it. The declaration holds until the choice changes.
  void SetProven() { proven_ = true; }
  bool proven() const { return proven_; }
  // True if the last four timed calls of the choice each took several times as long as NCCL's. Such calls are
  // too slow even if the program does not wait for them.
  bool IsGross() const { return !choice_.leaves_nccl_alone() && account_.IsGross(); }
  // True if the version's first, dense samples are taken and the pairs show a loss, but not surely. A new
  // version with dense samples is then worth its price. Where the choice loses, samples of NCCL's choice cost
  // nothing; where it does not, more pairs bring the mean nearer to 0 and the doubt ends.
  bool InDoubt() const;
  // Time of the choice over NCCL's, from the pairs since the choice or the fabric changed. Nothing before the
  // first pair, or if the choice is NCCL's own.
  std::optional<double> Ratio() const;
  uint32_t pairs() const { return slower_.count(); }
  // Nanoseconds by which this call took longer than the key's choice takes on average. 0 for calls of the
  // choice, and if one of the two durations is not known.
  double ExcessOf(const GuardedCall& call) const;

 private:
  const TimeLevel& ChoiceLevel() const;
  // Pairs a timed call with calls close to it in time.
  void TakeCompared(const GuardedCall& call, double log_time);
  void RestartComparison();

  TableKey key_;
  CollectiveConfig choice_;
  KeySearch search_;
  KeyAccount account_;
  PairedTimes pairs_;  // samples of NCCL's choice beside calls of the choice
  // Tests log(NCCL's time / the choice's): a mean below -kLeastLoss says that NCCL's choice is faster.
  BettingTest slower_{-kLeastLoss, kWinsorisedRatio};
  double nccls_ns_ = 0;
  int doubts_ = 0;  // number of versions that began while this choice was in doubt
  uint32_t calls_ = 0;
  uint32_t calls_of_version_ = 0;
  uint32_t calls_of_choice_ = 0;
  bool captured_ = false;
  bool proven_ = false;
  bool drawn_ = false;
};

}  // namespace dynamiccl
