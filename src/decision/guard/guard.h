// SPDX-License-Identifier: Apache-2.0
// The guard of one communicator. It lives on the communicator's leader (rank 0), watches what the decision
// table costs compared with NCCL's own choice, and proposes table versions that revoke a choice, try
// candidates or adopt a better one. A proposal decides no call: it takes effect at the call on which all
// ranks agree (docs/switching.md). docs/guard.md states what the guard promises.
//
// The life of one key (collective, size class, role), in order:
//   1. The key's first calls use the policy's choice, or what an earlier run confirmed. Every second one is
//      left to NCCL as a sample (table_plan.h), and GuardedKey pairs samples with calls of the choice.
//   2. A choice that loses by its account or by the pairs is revoked: the next version leaves the key to
//      NCCL.
//   3. A key that takes enough of the communication time gets trials: calls with other candidates. Trials are
//      paid from a budget (trial_pace.h) and stop when it is used up.
//   4. A trial that the paired times show to be faster is adopted, at most once in kGuardAdoptionSpacingNs.
//   5. A key that StepEffects shows to be hidden behind computation is judged by blocks of steps instead.
//   6. A change of the fabric (timing_detector.h) takes every choice back and the search begins anew.
//
// Tick() proposes for the gravest reason first: a changed fabric, a slow choice, an exhausted budget, a
// barred trial, a doubt, useless trials, a faster pace; only then adoptions, searches and comparisons.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "src/collective/role.h"
#include "src/decision/guard/guarded_key.h"
#include "src/decision/guard/pace_watch.h"
#include "src/decision/guard/step_effects.h"
#include "src/decision/guard/step_period.h"
#include "src/decision/guard/timing_detector.h"
#include "src/decision/guard/trial_pace.h"

namespace dynamiccl {

// Nanoseconds between two adoptions: the promise "at most once in 5 s" of docs/guard.md. The switching
// protocol keeps the same spacing (docs/switching.md). Revocations never wait.
inline constexpr int64_t kGuardAdoptionSpacingNs = 5'000'000'000;
// Credit for trials and timing before a job has any budget, in calls of each key at NCCL's time; all keys
// share it. With 40 calls a key, jobs of 150 steps in which nothing could be won lost up to 4 %
// (docs/results/guard.md).
inline constexpr double kProbingCreditCalls = 1;
// Share of what adopted choices are shown to save that may be spent on more trials. The other half stays with
// the job.
inline constexpr double kProbingOfSavings = 0.5;

// Training steps in one block of a block comparison (block_comparison.h). The first step of each block is
// left out of its mean.
inline constexpr uint32_t kStepsOfBlock = 6;

// An alarm of the timing detector is verified over this many training steps, because every step has the same
// calls. The time is limited to kVerifiedNs. In a job with one key 16 calls are enough (kVerifiedOfStream in
// timing_detector.cc).
inline constexpr int64_t kVerifiedSteps = 8;
// The most that a verification may span, in nanoseconds: a program with steps of seconds would otherwise
// learn of a change only after eight of them.
inline constexpr int64_t kVerifiedNs = 2'000'000'000;

// Prior knowledge about a key. The guard asks for it when it first sees the key and again after each change
// of the fabric.
struct KeyKnowledge {
  CollectiveConfig policy_choice;          // kLeaveNcclAlone: the policy has no choice for the key
  std::vector<ProbeCandidate> candidates;  // what trials may use, best first
  // An earlier run settled on it: it is used at once and the key is not searched.
  std::optional<CollectiveConfig> confirmed;
};
// Must answer the same for equal arguments and must not call back into the guard.
using KnowledgeOf = std::function<KeyKnowledge(const TableKey& key, Regime regime)>;

// Why a version was proposed. Logs print Name(reason); the order of the values is the order of the names in
// guard.cc.
enum class GuardReason : uint8_t {
  // A key's choice lost more than its account allows, or is slower by the paired samples, or blocks of steps
  // are slower with the table.
  kSlowerThanNccl,
  // The timing detector saw the fabric change: every choice goes back to NCCL's.
  kRegimeChanged,
  // Paired samples speak against a choice, but not yet surely. The same choice begins a new version, whose
  // first calls have dense samples.
  kDoubt,
  // A trial took more than kBarredTimes its predicted time and is taken out.
  kTrialBarred,
  // Trials have cost all that they may: they end, and what they showed is kept.
  kBudgetSpent,
  // More than a third of the trials are no gain: they are taken out, and the others come sooner.
  kFewerTrials,
  kSearch,     // trials begin
  kAdopt,      // a trial that was shown to be faster becomes the choice
  kConfirmed,  // what an earlier run settled on becomes the choice
  // No trial was better, or the program does not wait for the key's calls.
  kSearchEnded,
  // Keys that are hidden behind computation are compared by blocks of training steps from here on.
  kCompare,
  kCompared,      // that comparison ended: steps are no slower with the table, or steps changed
  kFasterTrials,  // trials may come twice as often: they cost less than expected, or more can be paid
};
inline constexpr int kGuardReasons = 13;
// The reason in words, for logs and metrics.
std::string_view Name(GuardReason reason);

// A table version that the guard asks for. The caller offers it to all ranks and reports the outcome with
// Guard::Committed or Guard::Failed.
struct Proposal {
  bool revocation = false;  // urgent: comes before adoptions and is exempt from their spacing
  GuardReason reason = GuardReason::kSearch;  // the gravest, where several apply
  TablePlan plan;
  // KeyCodes of the plan's keys that were never called. Their choice was settled at a size near theirs
  // (carried_choices.h).
  std::set<uint32_t> carried{};
};

// How a guard differs from job to job.
struct GuardOptions {
  // Share of the communication time below which a key is not searched.
  double least_share = 0.005;
  // Share of a call's time that timing it costs. The budget for trials pays it.
  double timing_cost = 0;
  // Calls of the communicator between a trial's call and the first call of a version without that trial. In
  // that time the trial's time becomes known and the ranks agree. Simulated jobs take 8 + 24 calls
  // (docs/results/guard.md).
  uint32_t switch_calls = 32;
  // Whether choices that were settled at one size go into the plan for sizes near it that were never called.
  bool carries = true;
};

// A key whose search ended, with the state of the fabric in which it ended.
struct SettledKey {
  TableKey key;
  Regime fabric = Regime::kNormal;
  CollectiveConfig choice;
  std::optional<double> ratio;  // time of the choice over NCCL's, as GuardedKey::Ratio
  uint32_t pairs = 0;           // number of paired samples behind `ratio`
  bool by_earlier_run = false;  // the site store knew it; this run did not search
};

// The guard of one communicator (see the top of this file). The leader's control thread owns it and is the
// only thread that calls it. It has no clock, socket or thread of its own: calls come in the order of their
// numbers and times are arguments, so equal input gives equal proposals. It cannot fail: a call without a
// time counts at the mean of its kind.
//
// It is one class although it has more than 20 members, because each proposal weighs all of them at once: the
// keys, the budget, the detector, the comparison and the versions of which it knows the outcome.
class Guard {
 public:
  // `knowledge` is called by TakeCall, Tick and Committed, and must stay valid as long as the guard.
  Guard(GuardOptions options, KnowledgeOf knowledge);

  // Declares what an earlier run confirmed for a key that was not called yet. The next proposal that
  // may adopt makes it the choice, so that the key's first call can use it.
  void Expect(const TableKey& key, const CollectiveConfig& confirmed);
  // Adds one call of the communicator. Calls come in the order of their numbers, each once.
  void TakeCall(const GuardedCall& call);
  // Returns the version to propose now, if there is a reason for one. At most one proposal is on the way:
  // Tick returns nothing until Committed or Failed. `now_ns` is any monotonic clock, the same one at each
  // call.
  std::optional<Proposal> Tick(int64_t now_ns);
  // All ranks use the proposed plan from now on, under this version number.
  void Committed(uint32_t version, int64_t now_ns);
  // Drops the pending proposal. The next tick proposes again if the condition still holds.
  void Failed() { proposed_.reset(); }

  // The plan and the number of the version in use.
  const TablePlan& plan() const { return plan_; }
  uint32_t version() const { return version_; }
  // The state of the fabric as last reported. Late ranks are no state of the fabric.
  Regime fabric() const { return detector_.fabric(); }
  const TimingDetector& detector() const { return detector_; }
  const StepPeriod& steps() const { return steps_; }
  const StepEffects& effects() const { return effects_; }
  // Whether the program waits for the key's calls, as trials and samples show it in the time of its steps.
  Criticality CriticalityOf(const TableKey& key) const { return effects_.LevelOf(KeyCode(key)); }
  // A change is suspected, so the caller should time more calls than the plan says.
  bool wants_more_times() const { return detector_.verifying() || pace_.wants_times(); }
  // Every key that was called or that a committed plan listed, by KeyCode.
  const std::map<uint32_t, GuardedKey>& keys() const { return keys_; }
  // Nanoseconds that trials and timing have cost.
  double probing_ns() const { return probing_ns_; }
  // Nanoseconds of all calls so far. A call that was not timed counts at the mean of its kind.
  double total_ns() const { return total_ns_; }
  // Time spent in calls whose key had this criticality level when the call was made.
  double total_ns(Criticality level) const { return total_by_level_[static_cast<size_t>(level)]; }
  // True once a search of this key ended in this run or in an earlier one.
  bool Settled(const TableKey& key) const { return settled_.contains(KeyCode(key)); }
  // Every settled key, once for each state of the fabric that this run saw. Captured keys are left out.
  std::vector<SettledKey> AllSettled() const;

 private:
  // Finds the key or makes it with what is known about it.
  GuardedKey& KeyOf(const TableKey& key);
  // These three take a call apart: its step, its cost and its time as a sample of the fabric.
  void TakeStepOf(const GuardedCall& call, const GuardedKey& key);
  void Account(const GuardedCall& call, GuardedKey& key);
  void Detect(const GuardedCall& call);
  // Nanoseconds that one call of each key takes at NCCL's choice: the unit in which credits are stated.
  double CallOfEachKeyNs() const;
  // Nanoseconds that trials and timing may cost in all, so far.
  double BudgetNs() const;
  // What trials may still cost; below 0 when they have cost too much.
  double CreditNs() const { return BudgetNs() - probing_ns_; }
  // True while the key's trials may cost something.
  bool IsCostly(const GuardedKey& key) const { return key.searching() && !key.only_winner_left(); }
  // Sets KeyPlan::rest of the plan's keys: how often trials are made, by what they may cost and what there is
  // to pay for them.
  void PaceTrials(TablePlan& plan) const;
  // True when trials could come twice as often for keys with more than half of the time that is searched.
  bool CanGoFaster();
  // True if the key may be searched: it is timed, weighs enough, is not settled, and half a call a key can be
  // paid.
  bool WorthTrials(const GuardedKey& key) const;
  // A hidden key is judged by the time of steps, not by its own times.
  bool Hidden(const GuardedKey& key) const { return CriticalityOf(key.key()) == Criticality::kHidden; }
  // True if the key is hidden and a comparison by steps already found its present choice to be no slower.
  bool JudgedBySteps(const GuardedKey& key) const;
  bool MustRevoke(const GuardedKey& key) const;
  // True if the key can take part in a comparison by blocks, and if it must because its choice was not
  // compared.
  bool CanCompare(const GuardedKey& key) const;
  // True when the comparison has its answer or will never have one: the steps changed, or the program turned
  // out to wait for one of the keys.
  bool ComparisonIsOver() const;
  bool MustCompare(const GuardedKey& key) const;
  // True when no trial of the key can still win, or when the program does not wait for the key.
  bool TrialsAreOver(const GuardedKey& key) const { return key.search_ended() || Hidden(key); }
  // What is settled in the present state of the fabric.
  std::vector<SettledKey> SettledNow() const;
  // Forgets what was learnt about the fabric of before.
  void Relearn();
  // True if a trial of the key was shown to be faster than its choice.
  bool Wins(const GuardedKey& key) const { return key.Winner() != nullptr && !Hidden(key); }
  // These five give the key's entry in the next version: as it is, changed as `reason` asks. `adopt`: the
  // version may also adopt winners and begin searches.
  CollectiveConfig ChoiceNext(const GuardedKey& key, bool adopt) const;
  std::vector<CollectiveConfig> TrialsNext(const GuardedKey& key, const CollectiveConfig& choice,
                                           GuardReason reason, bool adopt) const;
  KeyPlan EntryOf(const GuardedKey& key, GuardReason reason, bool adopt) const;
  bool InBlocksNext(const GuardedKey& key, GuardReason reason) const;
  // True if the entry ends the key's trials, with a winner or without one.
  bool EndsSearch(const GuardedKey& key, const KeyPlan& entry, GuardReason reason) const;
  // Adds entries for sizes near those that are settled, as long as the plan has room for them.
  void AddCarried(Proposal& proposal) const;
  // The part of GuardOptions::switch_calls that are calls of this key, and four more.
  uint16_t PauseOf(const GuardedKey& key) const;
  // True if the entry changes nothing about a key whose level is known, so it needs no dense samples again.
  bool IsSteadyWith(const GuardedKey& key, const KeyPlan& entry) const;
  // Builds the version for `reason`. A revocation adopts nothing.
  Proposal Propose(bool revocation, GuardReason reason);
  // Brings a key into the state that its entry in the committed plan describes.
  void TakeUp(const KeyPlan& entry, GuardReason reason);
  // The same for keys without an entry: keys first seen while the plan was on its way, and those of more keys
  // than a plan can hold.
  void TakeUpUnlisted(const std::set<uint32_t>& listed);
  // The gravest reason for a version that must not wait, if there is one.
  std::optional<GuardReason> WhyRevoke() const;
  // How far the searches of all keys are, added up.
  struct Search {
    bool comparing = false;    // a comparison by blocks of steps is running
    bool can_compare = false;  // a hidden key has a choice that was never compared
    bool searching = false;    // a key has trials
    bool can_begin = false;    // a key is worth trials that it does not have
    bool winner = false;       // a trial was shown to be faster than its key's choice
    bool ended = false;        // a key's trials are over, with whatever result
    double decided_ns = 0;     // time of keys whose trials have an answer
    double open_ns = 0;        // time of keys whose trials have none yet
    int ready = 0;             // number of keys with a winner
    int hopeful = 0;           // number of keys that may still have one
  };
  Search SearchOfKeys() const;
  // True while adoptions should wait for keys that are still being tried (see the definition).
  bool WinnersWait(const Search& search, int64_t now_ns);
  // The reason for a version that may wait for the spacing, if there is one.
  std::optional<GuardReason> WhyAdopt(int64_t now_ns);

  GuardOptions options_;
  KnowledgeOf knowledge_;
  TimingDetector detector_;
  PaceWatch pace_;
  StepPeriod steps_;
  StepEffects effects_;
  // Version of the last call that TakeStepOf saw.
  uint32_t version_of_steps_ = 0;
  std::map<uint32_t, GuardedKey> keys_;
  // What an earlier run found for a key; used by the next adoption.
  struct Confirmed {
    TableKey key;
    CollectiveConfig config;
  };
  std::map<uint32_t, Confirmed> confirmed_;       // by KeyCode, until a committed version lists the key
  std::map<uint32_t, CollectiveConfig> carried_;  // choices of the version in use for keys without a call
  std::set<uint32_t> compared_;       // keys whose present choice a comparison of steps found to be no slower
  std::map<uint32_t, bool> settled_;  // KeyCode to "settled by an earlier run"
  Regime fabric_of_keys_ = Regime::kNormal;  // the state of the fabric in which settled_ was settled
  // What was settled before the last change of the fabric, by KeyCode and state of the fabric.
  std::map<std::pair<uint32_t, Regime>, SettledKey> settled_before_;
  TablePlan plan_;
  uint32_t version_ = 1;
  std::optional<Proposal> proposed_;
  // Changes of the fabric are counted: seen, answered by a committed version, and answered by the proposal on
  // the way. A change that comes while a proposal is on the way is therefore not lost.
  bool regime_changed() const { return regime_changes_ != answered_changes_; }
  uint32_t regime_changes_ = 0;
  uint32_t answered_changes_ = 0;
  uint32_t proposed_changes_ = 0;
  // Choices that were revoked because they lost, in committed versions and with the proposal on the way.
  int revoked_by_loss_ = 0;
  int proposed_losses_ = 0;
  // Calls of a step when the comparison by blocks began; another number means that the steps changed.
  uint64_t block_step_calls_ = 0;
  // Times of the clock that Tick is given. Adoptions may come from adopt_from_ns_ on; ready_since_ns_ is when
  // something could first be adopted (below 0: nothing can); looked_ns_ is the last look at it.
  int64_t adopt_from_ns_ = 0;
  int64_t ready_since_ns_ = -1;
  int64_t looked_ns_ = 0;
  // Sum of the times that keys with a winner have waited for the others.
  int64_t waited_ns_ = 0;
  uint64_t calls_ = 0;
  double total_ns_ = 0;
  std::array<double, kCriticalities> total_by_level_{};
  double probing_ns_ = 0;
  // What trials took less than the choice would have; it may be spent on more trials.
  double refunded_ns_ = 0;
  // What choices that paired samples show to be faster than NCCL's have saved.
  double saved_ns_ = 0;
  // Value of calls_ when CanGoFaster last looked.
  uint64_t paced_at_ = 0;
};

}  // namespace dynamiccl
