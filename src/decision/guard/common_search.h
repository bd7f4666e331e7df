// SPDX-License-Identifier: Apache-2.0
// The first part of a communicator's experiment. It tries a few very different configs, each of which all
// keys use in the same steps. A property that makes a fabric unusual mostly affects all large collectives of
// a program. If all of them use a config, the step's time changes by the sum of their effects. So a good
// config shows in a fraction of the steps that a search key by key needs. That search (key_search.h) comes
// afterwards and looks for further gains.
//
// Testing groups of factors before single ones is group screening (Watson, "A Study of the Group Screening
// Method", Technometrics 3 (1961)).
#pragma once

#include <optional>
#include <vector>

#include "src/decision/guard/expected_effect.h"
#include "src/decision/guard/key_search.h"
#include "src/decision/guard/step_experiment.h"

namespace dynamiccl {

// The most configs that all keys try at a time. Each use may cost much, since all keys use the config, so
// uses are rare. With more configs, each would be used too rarely to show a gain.
inline constexpr size_t kMaxCommonArms = 2;

// A key that may take part in the common search.
struct JoiningKey {
  double share = 0;                               // share of the communicator's bytes in calls of the key
  const std::vector<ProbeCandidate>* candidates;  // in the order of UnlikeFirst
};

// Returns the configs that all keys may try together, in the order of trials. The pair of algorithm and
// protocol that NCCL uses for the most bytes comes first, because NCCL's pair with fewer channels leaves more
// of the device to the computation. The other pairs follow in the order of their best predicted times. Each
// pair comes with one channel and with half of its channels. Configs with all channels come last. A config is
// left out if only keys with less than a third of the bytes can use it.
std::vector<ProbeCandidate> CommonCandidates(const std::vector<JoiningKey>& keys);

// A config, and the effect on a step that is expected of it before any step of the present search has used
// it. The expectation comes from findings of other jobs, the policy, or steps before a change of the fabric.
struct Belief {
  CollectiveConfig config;
  StepEffect expected;
  ExpectedFrom from = ExpectedFrom::kOtherPlaces;
};

// The common search of one communicator, owned by its Guard on the leader's control thread. All effects are
// those that StepExperiment measures for kAllKeys, that is with all keys using the config.
class CommonSearch {
 public:
  // True once the search has ended on this fabric; the keys are then searched one by one.
  bool done() const { return done_; }
  void End() { done_ = true; }
  // Allows the search to begin again, because the fabric or the steps changed.
  void Restart();
  bool GaveUp(const CollectiveConfig& config) const { return search_.GaveUp(config); }
  // Replaces the configs that the search will try. Configs that looked faster before the last Restart come
  // first. Most changes of the fabric are slow waves of load on a busy machine; after such a wave the same
  // configs are good again.
  void SetCandidates(std::vector<ProbeCandidate> candidates);
  // Sets the belief. Its config leads from the search's first step on, until steps of this job contradict the
  // promise.
  void Believe(const Belief& belief) { belief_ = belief; }
  const std::optional<Belief>& belief() const { return belief_; }
  // The circumstances in which configs are expected to have an effect. Not set until times of calls show the
  // circumstances.
  void Know(const std::optional<Circumstances>& circumstances) { circumstances_ = circumstances; }
  const std::optional<Circumstances>& circumstances() const { return circumstances_; }
  bool began() const { return search_.began(); }

  // Gives up arms that are shown to be no gain; called after each step of the experiment. Returns the arms
  // that are so slow that they must go at once.
  std::vector<CollectiveConfig> Judge(const StepExperiment& experiment);
  // True if nothing is being tried or left to try, or if too many steps have passed without a find.
  bool over(const StepExperiment& experiment) const;
  // Begins a second round with more patience. Effects measured so far still count. If steps vary so much that
  // the first round could not judge the arms, all arms are tried again. Otherwise only arms that were given
  // up after a single use are tried again. Returns false, and begins nothing, if there is no reason for a
  // second round.
  bool TryAgain(const StepExperiment& experiment);
  // Opens further arms.
  void Refill(const StepExperiment& experiment);
  // Returns the leader: the open arm whose steps look fastest, if they look much faster than those of the
  // keys' choices. Most steps use the leader. A few others use its challengers, which are configs of other
  // pairs of algorithm and protocol with as many channels. If the search believes in the leader only because
  // of steps before a change of the fabric, all configs are challengers.
  std::optional<CollectiveConfig> Leader(const StepExperiment& experiment) const;
  // Returns the estimated effect of an open arm, from the steps that used it. The estimate for the believed
  // config also includes the belief's expectation.
  StepEffect Known(const CollectiveConfig& config, const StepExperiment& experiment) const;
  // Returns the leader if it is surely faster than the keys' choices and no challenger is left that may be
  // even better. After a limited number of steps the leader wins without waiting for challengers.
  std::optional<CollectiveConfig> Winner(const StepExperiment& experiment) const;
  // True if steps have used the leader and no challenger is in use although there are some. This happens
  // because a believed config leads alone at first.
  bool LacksChallenger(const StepExperiment& experiment) const;
  // Returns the arms of the next table version: the leader and its challengers. Without a leader it returns
  // what KeySearch::Next returns.
  std::vector<CollectiveConfig> Next(const StepExperiment& experiment, bool all_may_cost) const;
  const std::vector<CollectiveConfig>& open() const { return search_.open(); }
  const std::vector<ProbeCandidate>& candidates() const { return search_.candidates(); }

  // True if the steps of an open arm are faster than those of the keys' choices by this many standard errors.
  bool LooksFaster(const StepExperiment& experiment, double errors) const;

 private:
  static KeySearch::SeenOf SeenIn(const StepExperiment& experiment);
  // True if an arm is open that no step has used yet.
  bool HasUnjudgedArm(const StepExperiment& experiment) const;
  // True if the config is a challenger of the leader that may yet turn out to be better.
  bool MayChallenge(const CollectiveConfig& config, const CollectiveConfig& leader,
                    const StepExperiment& experiment) const;
  // True if the config is the believed one and the steps of this job do not contradict the belief.
  bool IsBelieved(const CollectiveConfig& config, const StepExperiment& experiment) const;
  // True if steps before a change of the fabric let the search believe in this config, and steps since then
  // do not contradict.
  bool IsKept(const CollectiveConfig& config, const StepExperiment& experiment) const;
  // True if steps show that a config which most keys used before a change of the fabric gains much less now.
  bool HasLostItsGain(const StepExperiment& experiment) const;
  bool HasChallenger(const CollectiveConfig& leader, const StepExperiment& experiment) const;
  // Notes which arms look faster; SetCandidates later puts these first.
  void Remember(const StepExperiment& experiment);

  KeySearch search_;
  std::vector<CollectiveConfig> liked_;  // at most kMaxCommonArms, the fastest first
  std::optional<Belief> belief_;
  std::optional<Circumstances> circumstances_;
  bool done_ = false;
  bool tries_again_ = false;
};

}  // namespace dynamiccl
