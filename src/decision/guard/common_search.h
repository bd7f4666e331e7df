// SPDX-License-Identifier: Apache-2.0
// The first part of a communicator's experiment: a few configs that differ much from each other, each used by
// all keys in the same steps. What makes a fabric unusual mostly does so for all of a program's large
// collectives, and a config that all of them use changes a step by the sum of its effects. So a good config
// shows in a fraction of the steps that a search key by key needs. That search (key_search.h) then looks for
// what is left to gain. Testing groups of factors before single ones is group screening (Watson, "A Study of
// the Group Screening Method", Technometrics 3 (1961)).
#pragma once

#include <optional>
#include <vector>

#include "src/decision/guard/key_search.h"
#include "src/decision/guard/step_experiment.h"

namespace dynamiccl {

// The most configs that are tried together at a time. Each use of one may cost much, since all keys use it,
// so uses are rare: with more arms, a good one would be used too rarely to show its gain.
inline constexpr size_t kMaxCommonArms = 2;

// A key that may take part.
struct JoiningKey {
  double share = 0;                               // of the bytes
  const std::vector<ProbeCandidate>* candidates;  // in the order of UnlikeFirst
};

// Returns the configs that all keys may try together, in the order of trials. The pair of algorithm and
// protocol that NCCL uses for the most bytes comes first, because with fewer channels it leaves more of the
// device to the computation. The other pairs follow in the order of their best predicted times. Each comes
// with one channel and with half of the channels. Configs with all channels come last. Configs that keys with
// less than a third of the bytes can use are left out.
std::vector<ProbeCandidate> CommonCandidates(const std::vector<JoiningKey>& keys);

// A config, and the effect on a step that is expected of it before any step of this job has used it.
struct Belief {
  CollectiveConfig config;
  StepEffect expected;
};

// The common search of one communicator, owned by its Guard on the leader's control thread. Effects are those
// of StepExperiment on kAllKeys.
class CommonSearch {
 public:
  // True once the search has ended on this fabric; the keys are then searched one by one.
  bool done() const { return done_; }
  void End() { done_ = true; }
  // Allows the search to begin again, because the fabric or the steps changed.
  void Restart();
  // Replaces the configs that the search will open. Those that looked faster before the last Restart come
  // first: most changes are slow waves of a busy machine, after which the same configs are good.
  void SetCandidates(std::vector<ProbeCandidate> candidates);
  // Declares the effect on a step that other places' findings promise for one of the candidates. It leads
  // from the search's first step on, until steps contradict.
  void Believe(const CollectiveConfig& config, const StepEffect& expected) { belief_ = {config, expected}; }
  const std::optional<Belief>& belief() const { return belief_; }
  bool began() const { return search_.began(); }

  // Gives up arms that are shown to be no gain; called after each block of steps. Returns those that are so
  // slow that they must go at once.
  std::vector<CollectiveConfig> Judge(const StepExperiment& experiment);
  // True if nothing is open or left to open, or if too many steps have passed without a find.
  bool over(const StepExperiment& experiment) const;
  // Begins a second round with more patience; effects seen so far still count. If steps vary so much that the
  // first round could not judge, it tries all arms again. Otherwise it tries those again that were given up
  // after a single use. Returns false, and begins nothing, if there is no reason for a second round.
  bool TryAgain(const StepExperiment& experiment);
  // Opens further arms.
  void Refill(const StepExperiment& experiment);
  // Returns the open arm whose steps look fastest, if they look much faster than those of the keys' choices.
  // It is used in most steps, and its challengers in a few others: configs of other pairs of algorithm and
  // protocol with as many channels.
  std::optional<CollectiveConfig> Leader(const StepExperiment& experiment) const;
  // Returns what is known of an open arm's effect: what steps show, and for a believed one also what other
  // places' findings promise.
  StepEffect Known(const CollectiveConfig& config, const StepExperiment& experiment) const;
  // Returns the leader if it is surely faster than the keys' choices and no challenger is left that may be
  // better still. Challengers are waited for only so long.
  std::optional<CollectiveConfig> Winner(const StepExperiment& experiment) const;
  // True if the leader has been seen but no challenger is open, though there are some: it was believed at
  // first and led alone.
  bool LacksChallenger(const StepExperiment& experiment) const;
  // Returns the arms of the next version: the leader and its challengers, or what KeySearch::Next returns.
  std::vector<CollectiveConfig> Next(const StepExperiment& experiment, bool all_may_cost) const;
  const std::vector<CollectiveConfig>& open() const { return search_.open(); }
  const std::vector<ProbeCandidate>& candidates() const { return search_.candidates(); }

  // True if the steps of an open arm are faster than those of the keys' choices by this many standard errors.
  bool LooksFaster(const StepExperiment& experiment, double errors) const;

 private:
  static KeySearch::SeenOf SeenIn(const StepExperiment& experiment);
  // True if an arm is open that no step has judged yet.
  bool HasUnjudgedArm(const StepExperiment& experiment) const;
  // True if the config is a challenger of the leader that may yet turn out to be better.
  bool MayChallenge(const CollectiveConfig& config, const CollectiveConfig& leader,
                    const StepExperiment& experiment) const;
  // True if the config is the believed one and steps have not contradicted yet.
  bool IsBelieved(const CollectiveConfig& config, const StepExperiment& experiment) const;
  bool HasChallenger(const CollectiveConfig& leader, const StepExperiment& experiment) const;
  // Notes which arms look faster, for SetCandidates.
  void Remember(const StepExperiment& experiment);

  KeySearch search_;
  std::vector<CollectiveConfig> liked_;  // at most kMaxCommonArms, the fastest first
  std::optional<Belief> belief_;
  bool done_ = false;
  bool tries_again_ = false;
};

}  // namespace dynamiccl
