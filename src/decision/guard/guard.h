// SPDX-License-Identifier: Apache-2.0
// The guard of one communicator. It lives on the communicator's leader (rank 0), watches what the decision
// table costs compared with NCCL's own choice, and proposes table versions that revoke a choice, try other
// configs or adopt a better one. A proposal decides no call: it takes effect at the call on which all
// ranks agree (docs/switching.md). docs/guard.md states what the guard promises.
//
// The life of one key (collective, size class, role), in order:
//  1. The key's first calls use the policy's choice, or what an earlier run confirmed. Every second one is
//     left to NCCL as a sample (table_plan.h), and GuardedKey pairs samples with calls of the choice.
//  2. A choice that loses by its account or by the pairs is revoked: the next version leaves the key to
//     NCCL.
//  3. Once the program's steps are known, all keys that weigh enough take part in one experiment. At first
//     they use other configs together (common_search.h), then each key for itself: in some steps, drawn for
//     each key independently, the key uses another config. StepExperiment estimates how a config changes the
//     time of a whole step. KeySearch gives configs up, adopts them and chooses what is tried next.
//  4. A config whose steps are surely faster is adopted. NCCL's own choice stays in the experiment beside it,
//     and replaces it if steps show that NCCL's is faster after all. A config that an earlier run confirmed
//     is compared with NCCL's own in the same way.
//     If the job itself has become another one (structure_watch.h), what was settled in its former steps is
//     searched again, with a credit of its own. The choices stay in use meanwhile.
//  5. A change of the fabric shows in the times of calls or of whole steps (timing_detector.h). The guard
//     then forgets the effects on steps and the search begins anew. If steps felt the change, all keys search
//     together, and most steps go on using what most keys used. Otherwise each adopted or confirmed config is
//     proved again beside NCCL's own in every other step. Choices that no experiment has judged go back to
//     NCCL's.
// In a program whose steps do not repeat, 1 and 2 hold and nothing is tried.
//
// The class is large because a proposal weighs everything at once: a version replaces the entries of all
// keys, so each rule must know what the others ask for. What can be judged by itself has a class of its own:
// keys, searches, experiments, steps and detectors.
//
// Tick() proposes for the gravest reason first: a changed fabric, a slow choice, changed steps, an arm that
// is much too slow, an exhausted budget, a doubt; only then adoptions and further configs.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "src/collective/role.h"
#include "src/decision/guard/common_search.h"
#include "src/decision/guard/expected_effect.h"
#include "src/decision/guard/guarded_key.h"
#include "src/decision/guard/pace_watch.h"
#include "src/decision/guard/step_effects.h"
#include "src/decision/guard/step_experiment.h"
#include "src/decision/guard/step_period.h"
#include "src/decision/guard/step_watch.h"
#include "src/decision/guard/step_witness.h"
#include "src/decision/guard/structure_watch.h"
#include "src/decision/guard/timing_detector.h"

namespace dynamiccl {

// At least this many nanoseconds pass between two versions, unless the second one revokes a choice:
// revocations never wait. The switching protocol keeps the same spacing (docs/switching.md).
inline constexpr int64_t kGuardAdoptionSpacingNs = 250'000'000;
// If the ranks did not agree to a version that can wait, the guard proposes it again after this many
// nanoseconds.
inline constexpr int64_t kGuardRetryNs = 1'000'000'000;
// Bounds the total cost of experiments, that is the time that steps take longer than with NCCL's choice:
// kProbingCreditSteps steps once in a job and again when steps have changed for good (step_watch.h), plus
// kProbingBudget of the time of all steps, plus kProbingOfSavings of what adopted choices save. When steps
// have changed for good, a debt is forgiven, and if they have become longer, kProbingOfSavings of what
// kStepsBetweenCredits steps could win back comes on top. In a job of 400 steps in which nothing can be
// gained and nothing changes, that is 1 %; docs/guard.md says by how much estimates of the cost fall short.
// No credit is added within kStepsBetweenCredits steps of the last one.
inline constexpr double kProbingCreditSteps = 2;
inline constexpr uint64_t kStepsBetweenCredits = 100;
inline constexpr double kProbingBudget = 0.005;
inline constexpr double kProbingOfSavings = 0.05;

// A verification of the timing detector's alarm takes this many training steps, because every step has the
// same calls, but at most kVerifiedNs. In a job with one key 16 calls are enough (kVerifiedOfStream in
// timing_detector.cc).
inline constexpr int64_t kVerifiedSteps = 8;
// The longest span of a verification, in nanoseconds: a program with steps of several seconds would otherwise
// learn of a change only after eight of them.
inline constexpr int64_t kVerifiedNs = 2'000'000'000;

// Prior knowledge about a key. The guard asks for it when it first sees the key and again after each change
// of the fabric.
struct KeyKnowledge {
  CollectiveConfig policy_choice;          // kLeaveNcclAlone: the policy has no choice for the key
  std::vector<ProbeCandidate> candidates;  // the configs that may be tried, in this order
  // The config on which an earlier run settled. It is used at once and the key is not searched.
  std::optional<CollectiveConfig> confirmed;
  // The time that NCCL's cost model predicts for NCCL's own choice, in nanoseconds; 0: not known.
  double nccls_ns = 0;
};
// Returns the prior knowledge about a key in this state of the fabric. Must answer the same for equal
// arguments and must not call back into the guard.
using KnowledgeOf = std::function<KeyKnowledge(const TableKey& key, Regime regime)>;

// Predicts from other places' findings, or by the policy, how a config changes a step (ExpectedBy in
// expected_effect.h). The guard does not know its own place, so the callee fills it into the question.
using ExpectedOf = std::function<std::optional<Expectation>(const EffectQuestion& question)>;

// The reason for which a version was proposed. Logs print Name(reason). The names in guard.cc are in the same
// order as these values.
enum class GuardReason : uint8_t {
  // A key's choice has lost more time than its account allows (key_account.h), or samples or steps show it to
  // be slower.
  kSlowerThanNccl,
  // Times of calls show that the fabric changed: choices are proved again or searched anew, or go back to
  // NCCL's.
  kRegimeChanged,
  // Whole steps take longer or shorter than before, but the times of calls do not show why. The guard does
  // the same as for kRegimeChanged.
  kPaceChanged,
  // Steps have other calls than before, so the experiment ends. Another one begins when the new steps repeat.
  kStepsChanged,
  // Samples speak against a choice, but not yet surely. The new version keeps the choice and takes many
  // samples of NCCL's choice among its first calls.
  kDoubt,
  kArmTooSlow,   // a config makes steps much slower and is taken out at once
  kBudgetSpent,  // the experiment has used up its budget: it rests, and its results are kept
  kSearch,       // an experiment begins, or goes on after a rest
  kAdopt,        // a config whose steps are surely faster becomes the choice
  kConfirmed,    // a config that an earlier run confirmed becomes the choice
  kProvedAgain,  // steps on a changed fabric prove a choice, and use NCCL's choice beside it seldom again
  kNextArms,     // other configs replace those that are no gain
  kSearchEnded,  // no config is left that could be better
};
inline constexpr int kGuardReasons = 13;
// The reason in words, for logs and metrics.
std::string_view Name(GuardReason reason);

// A table version that the guard asks for. The caller offers it to all ranks and reports the outcome with
// Guard::Committed or Guard::Failed.
struct Proposal {
  bool revocation = false;  // urgent: comes before adoptions and is exempt from their spacing
  GuardReason reason = GuardReason::kSearch;  // the gravest, if several apply
  TablePlan plan;
  // KeyCodes of those keys in the plan that were never called. Their choice was settled at a size near theirs
  // (carried_choices.h).
  std::set<uint32_t> carried{};
};

// Holds the options of a guard, which differ from job to job.
struct GuardOptions {
  // Keys whose calls have a smaller share of the communicator's bytes are not searched.
  double least_share = 0.005;
  // Share of a call's time that timing the call costs.
  double timing_cost = 0;
  // True if the plan also gets choices for sizes that were never called, from settled sizes near them.
  bool carries = true;
  ExpectedOf expected{};  // null: nothing is expected of any config
  // Answers whether earlier runs in this place began in like circumstances (BeganLike); null: nothing is
  // known.
  std::function<bool(const Circumstances& circumstances)> began_like{};
  TablePlan first{};  // plan of the version in use when the guard begins, equal on all ranks
};

// A key whose search ended, with the state of the fabric in which it ended.
struct SettledKey {
  TableKey key;
  Regime fabric = Regime::kNormal;
  CollectiveConfig choice;
  std::optional<double> ratio;  // time with the choice over the time with NCCL's, of a step or of the calls
  uint32_t pairs = 0;           // steps or paired samples behind `ratio`
  bool by_earlier_run = false;  // the choice comes from the site store; this run did not search
};

// The guard of one communicator (see the top of this file). The leader's control thread owns it and is the
// only thread that calls it. It has no clock, socket or thread of its own: calls come in the order of their
// numbers and times are arguments, so equal input gives equal proposals. It cannot fail: it estimates the
// time of an untimed call by the mean of calls with the same kind of choice.
//
// It is one class although it has more than 20 members, because each proposal weighs all of them together:
// the keys, the experiment, the detector and the state of the proposed versions.
class Guard {
 public:
  // `knowledge` is called by TakeCall, Tick and Committed, and must stay valid as long as the guard.
  Guard(GuardOptions options, KnowledgeOf knowledge);

  // Declares the config that an earlier run confirmed for a key that was not called yet. The next proposal
  // that may adopt makes it the choice, so the key's first call can use it.
  void Expect(const TableKey& key, const CollectiveConfig& confirmed);
  // Adds one call of the communicator. Calls come in the order of their numbers, each once.
  void TakeCall(const GuardedCall& call);
  // Returns the version to propose now, if there is a reason for one. Only one proposal may be pending: after
  // returning one, Tick returns nothing until Committed or Failed. `now_ns` is any monotonic clock, the same
  // one at each call.
  std::optional<Proposal> Tick(int64_t now_ns);
  // All ranks use the pending plan from now on, under this version number.
  void Committed(uint32_t version, int64_t now_ns);
  // Drops the pending proposal. It is made again if the condition still holds: a revocation at the next tick,
  // an adoption after kGuardRetryNs.
  void Failed(int64_t now_ns);

  // The plan in use, and the number of its table version.
  const TablePlan& plan() const { return plan_; }
  uint32_t version() const { return version_; }
  // The state of the fabric, as the detector reported it last. Late ranks do not change this state.
  Regime fabric() const { return detector_.fabric(); }
  const TimingDetector& detector() const { return detector_; }
  const StepPeriod& steps() const { return steps_; }
  const StructureWatch& structure() const { return structure_; }
  const StepEffects& effects() const { return effects_; }
  const StepExperiment& experiment() const { return experiment_; }
  // True while the common search goes on: all keys use other configs in the same steps.
  bool searches_together() const { return has_steps() && !common_.done(); }
  // The config in which the common search believes, because of other places' findings, the policy or steps
  // before a change of the fabric; nothing if they promise nothing.
  const std::optional<Belief>& belief() const { return common_.belief(); }
  // Returns whether the program waits for the key's calls, judged by how samples and arms change the time of
  // its steps.
  Criticality CriticalityOf(const TableKey& key) const { return effects_.LevelOf(KeyCode(key)); }
  // True while a change is suspected: the caller should then time more calls than the plan says.
  bool wants_more_times() const { return detector_.verifying() || pace_.wants_times(); }
  // Every key that was called or that a committed plan listed, by KeyCode.
  const std::map<uint32_t, GuardedKey>& keys() const { return keys_; }
  // Nanoseconds that experiments and timing have cost.
  double probing_ns() const { return timing_ns_ + lost_before_ns_ + experiment_.lost_ns(); }
  // Nanoseconds of all calls so far. A call that was not timed counts with the mean time of the choice that
  // it used: NCCL's or the key's.
  double total_ns() const { return total_ns_; }
  // Nanoseconds of the calls whose key had this criticality level when the call was made.
  double total_ns(Criticality level) const { return total_by_level_[static_cast<size_t>(level)]; }
  // True once a search of this key ended in this run or in an earlier one.
  bool Settled(const TableKey& key) const { return settled_.contains(KeyCode(key)); }
  // Every settled key, once for each state of the fabric in this run. Keys captured into CUDA graphs are left
  // out.
  std::vector<SettledKey> AllSettled() const;
  // Returns what the last common search has found about configs so far, for the site store. The caller fills
  // in the place and the time. Returns nothing if no calls were timed.
  std::vector<std::pair<FindingKey, StepFinding>> Findings() const;

 private:
  // Returns the key's entry; makes it from prior knowledge if the key is new.
  GuardedKey& KeyOf(const TableKey& key);
  // These three evaluate a call: TakeStepOf as part of a step, Account by its cost, and Detect by its time as
  // a sign of a change of the fabric.
  void TakeStepOf(const GuardedCall& call, const GuardedKey& key);
  void Account(const GuardedCall& call, const GuardedKey& key);
  void Detect(const GuardedCall& call);
  // Notes a change of the fabric, which the next version answers.
  void NoteChange(int64_t at_ns);
  // True if steps judge every choice in use that is not NCCL's.
  bool StepsJudgeAll() const;
  // Looks for a change in the time of whole steps, and confirms or dismisses a change that the times of calls
  // suggest. `log_step_ns` is what StepExperiment::Take returned.
  void DetectBySteps(const GuardedCall& call, double log_step_ns);
  // True if a change was reported so recently that another sign of a change is a sign of the same one.
  bool HasJustChanged() const;
  // Called some blocks of steps after a change of the fabric. Renews the credit if steps still take another
  // time than before the change.
  void ConfirmChange();
  // Forgives a debt and adds kProbingCreditSteps steps to the credit, and more if `longer`, a step's time
  // over that before the change, is above 1. Does nothing if the credit grew within the last
  // kStepsBetweenCredits steps. `calls_of_step` is the number of calls in a step.
  void RenewCredit(uint64_t calls_of_step, double longer);
  // Lets the keys be searched again, because the job has become another one. `calls_of_step` is as above.
  void Reopen(uint64_t calls_of_step);
  // Begins an experiment once steps are known, and another one when steps have changed.
  void FollowSteps(const GuardedCall& call);
  void BeginExperiment(StepGrid grid, int64_t now_ns);
  bool has_steps() const { return experiment_.grid().calls > 0; }
  // Returns a function that gives each config's estimated effect on steps, relative to `choice`.
  KeySearch::SeenOf SeenBeside(const GuardedKey& key, const CollectiveConfig& choice) const;
  // Gives up the arms that the last block of steps has shown to be no gain.
  void JudgeArms();
  // Gives up common arms that steps have shown to be no gain. Ends the common search when nothing is left to
  // try.
  void JudgeCommon();
  // Ends the common search. `winner`: the config that all keys adopted, if one was found.
  void EndCommon(const std::optional<CollectiveConfig>& winner);
  // Returns the nanoseconds of a step with NCCL's choices, also while most steps use the common search's
  // leader.
  double StepNsOfNccls() const;
  // Returns the slowness of calls and the share of communication in a step, both under NCCL's choice. Returns
  // nothing without times of calls, or if keys use other choices: findings compare configs with NCCL's
  // choice.
  std::optional<Circumstances> CircumstancesNow() const;
  // Returns the question that expected_effect.h answers about a config, in the circumstances of this search.
  EffectQuestion QuestionOf(const CollectiveConfig& config, const CommonSearch& search) const;
  // If the job now runs in other circumstances than earlier runs, keys that those runs left to NCCL are
  // searched again.
  void ForgetOtherCircumstances();
  // Notes the circumstances of the proposed common search. Makes it believe in the config that promises the
  // most: by other places' findings, or else the policy, or by steps before a change of the fabric.
  void UseFindings();
  // Returns the keys whose candidates take part in the common search.
  std::vector<JoiningKey> KeysThatJoin() const;
  // Sets proposed_common_, and the common arms of `plan`.
  void PlanCommon(GuardReason reason, bool adopt, TablePlan& plan);
  // Returns the reason for a version that may wait, as WhyAdopt does, during the common search.
  std::optional<GuardReason> WhyAdoptCommon() const;
  // Returns TablePlan::common_pause for this leader: of that many steps, one does not use the leader.
  uint16_t PauseOf(const CollectiveConfig& leader) const;
  // True if these common arms should be used much more often, or less often, than in the version in use.
  bool NeedsOtherPace(const std::vector<CollectiveConfig>& next) const;
  // True if the version in use has arms that do not look like a gain.
  bool ArmsMayCost() const;
  // The share of a step's time that is saved by the config which all keys adopted; 0 if they adopted none.
  double CommonGain() const { return 1 - std::exp(common_seen_.effect.mean); }
  // Returns the nanoseconds that adopted choices have saved in this job, compared with NCCL's choice.
  double SavedNs() const;
  // Nanoseconds of a step of the experiment, on average.
  double StepNs() const;
  // Returns the nanoseconds that experiments may still cost; below 0 when they have cost too much.
  double CreditNs() const;
  // Sets KeyPlan::spacing of the plan's keys by what their arms are expected to cost.
  void PaceArms(TablePlan& plan) const;
  // Share of the steps' time that the experiment may cost for now.
  double Pace() const;
  // Number of steps from one use of a common arm to the next.
  uint16_t CommonSpacing(const std::vector<CollectiveConfig>& arms) const;
  // Number of steps from one use of a challenger to the next. The first arm is the leader of
  // proposed_common_.
  uint16_t ChallengerSpacing(const std::vector<CollectiveConfig>& leader_first) const;
  // Mean expected cost of using one of these common arms in place of `other`, as the log of the step's time
  // ratio. `unknown` is the assumed cost of an untried arm.
  double LossTogether(const std::vector<CollectiveConfig>& arms, const CollectiveConfig& other,
                      double unknown) const;
  double ExpectedLoss(const GuardedKey& key, const KeyPlan& entry) const;
  // Bytes of the key's calls over the bytes of all calls so far.
  double ShareOf(const GuardedKey& key) const;
  // True if the key may take part in an experiment, by its weight and its present choice.
  bool CanSearch(const GuardedKey& key) const;
  // True if an experiment can compare the key's choice with NCCL's own, and steps of this run or of an
  // earlier run found that choice.
  bool StepsCanProve(const GuardedKey& key) const;
  bool MustRevoke(const GuardedKey& key) const;
  // Returns the settled keys with their present choices, for the present state of the fabric.
  std::vector<SettledKey> SettledNow() const;
  // Stores the settled choices and forgets times and effects, because the fabric changed.
  void Relearn();
  // True if the latest change of the fabric made steps 10 % longer or shorter. A smaller change may be noise,
  // or leaves little to gain, so each key's choice then stays in use while it is proved again.
  bool StepsFelt() const;
  // Returns the config that steps have found and that keys with at least half of the bytes use, with its
  // effect on a step; nothing if there is none. After a change of the fabric the common search begins with
  // it.
  std::optional<Belief> MostUsed() const;
  // True if times of calls have shown the circumstances since the common search began. The guard can then ask
  // which config is promising.
  bool HasNewCircumstances() const;
  // True if a search should first wait for times of calls. After a change of the fabric, new times say which
  // config to begin with.
  bool AwaitsCircumstances() const;
  // These return the key's choice, its search and its entry in the next version. `adopt`: the version may
  // also adopt winners and try other configs.
  CollectiveConfig ChoiceNext(const GuardedKey& key, bool adopt) const;
  KeySearch SearchNext(const GuardedKey& key, const CollectiveConfig& choice, GuardReason reason,
                       bool adopt) const;
  KeyPlan EntryOf(const GuardedKey& key, GuardReason reason, bool adopt);
  // True if the experiment must also try NCCL's own choice for this key, beside the configs that `entry`
  // lists.
  bool NeedsNccls(const KeyPlan& entry) const;
  // True if steps show that NCCL's choice is slower than the entry's.
  bool IsNcclsSlower(const KeyPlan& entry) const;
  // True if steps show how the entry's choice compares with NCCL's.
  bool IsProved(const KeyPlan& entry) const;
  // True if the version in use still uses NCCL's choice in every second step beside a choice that steps have
  // proved again.
  bool ProvesNeedlessly() const;
  // True if the version changes nothing about a key whose level is known, so the key needs no new dense
  // samples.
  bool IsSteadyWith(const GuardedKey& key, const KeyPlan& entry) const;
  // Adds entries for keys that were never called and lie near settled keys (carried_choices.h), as long as
  // the plan has room.
  void AddCarried(Proposal& proposal) const;
  // Builds the version for `reason`. A version that revokes a choice adopts no other config.
  Proposal Propose(bool revocation, GuardReason reason);
  // Notes the effect that the choices of the version just committed are expected to have on steps, for
  // BeginVersion. Called before TakeUp.
  void AwaitVersion(const Proposal& proposal);
  // If this is the first call of an awaited version, tells the watches of steps how much its choices are
  // expected to change a step. Calls of earlier versions are no evidence about a changed fabric, so the
  // experiment begins here.
  void BeginVersion(const GuardedCall& call);
  // Updates a key to its entry in the committed plan.
  void TakeUp(const KeyPlan& entry);
  // Updates the keys without an entry: those first seen while the proposal was pending, and those for which
  // the plan had no room.
  void TakeUpUnlisted(const std::set<uint32_t>& listed);
  // Returns the gravest reason for a version that cannot wait, if there is one.
  std::optional<GuardReason> WhyRevoke() const;
  // Returns the reason for a version that may wait for kGuardAdoptionSpacingNs, if there is one.
  std::optional<GuardReason> WhyAdopt() const;

  GuardOptions options_;
  KnowledgeOf knowledge_;
  TimingDetector detector_;
  StepWatch step_watch_;
  StepWitness step_witness_;
  uint32_t clock_changes_ = 0;  // changes of the experiment's clock when both watches last took a step
  PaceWatch pace_;
  StepPeriod steps_;
  StructureWatch structure_;
  StepEffects effects_;
  StepExperiment experiment_;
  int64_t searching_from_ns_ = -1;  // when the job's first experiment began; below 0: none began yet
  int64_t newest_ns_ = 0;           // when the newest call was issued
  uint64_t newest_call_ = 0;
  std::optional<uint64_t> newest_gather_;  // number of the newest call of a collective without reduction
  uint64_t period_of_grid_ = 0;            // calls in a step when the experiment began
  uint64_t misfits_ = 0;                   // calls in a row during which steps had another number of calls
  // Steps and blocks of the experiment that JudgeArms has seen.
  uint64_t judged_steps_ = 0;
  uint32_t judged_blocks_ = 0;
  bool arm_too_slow_ = false;  // an arm of the version in use must be replaced at once
  bool resting_ = false;       // the budget was spent, and no new credit has come since
  // True once a version of this experiment was proposed to compare proven choices with NCCL's own. Such a
  // version is proposed only once, because a plan may have no room for all keys (Fitting).
  bool proofs_asked_ = false;
  // A committed version whose first call TakeStepOf has not seen yet; 0: there is none. If several are
  // awaited, the last one's number stands here, and the other members hold for all of them.
  struct Awaited {
    uint32_t version = 0;
    bool answers_change = false;   // the version answers a change of the fabric
    bool adopts = false;           // the version changes choices
    std::optional<double> effect;  // effect of the changed choices on a step, in logs; nothing: not known
  };
  Awaited awaited_;
  // Table version of the last call that TakeStepOf saw.
  uint32_t version_of_steps_ = 0;
  std::map<uint32_t, GuardedKey> keys_;
  CommonSearch common_;
  // These two take effect when the pending proposal is committed: the state of the common search, and the
  // config that all keys adopt.
  CommonSearch proposed_common_;
  std::optional<CollectiveConfig> proposed_winner_;
  bool changed_circumstances_ = false;  // the fabric changed since the last search began
  // The config that most keys used before a change of the fabric, until the search after the change has ended
  // or given the config up.
  std::optional<Belief> used_before_;
  // Findings of the common search that ended last.
  std::vector<std::pair<FindingKey, StepFinding>> kept_findings_;
  // True while an experiment after a change of the fabric compares NCCL's own choice with the choices that
  // steps had proved before the change.
  bool proves_again_ = false;
  // The result of the common search in this experiment: the config that all keys adopted, and its effect on a
  // step. Without such a config the effect is 0.
  std::optional<CollectiveConfig> common_choice_;
  SeenConfig common_seen_;
  int64_t common_from_ns_ = 0;  // when the present experiment began
  // The searches that take effect when the pending proposal is committed, by KeyCode.
  std::map<uint32_t, KeySearch> proposed_searches_;
  // The config that an earlier run found for a key that no committed version lists yet. The next adoption
  // uses it.
  struct Confirmed {
    TableKey key;
    CollectiveConfig config;
  };
  std::map<uint32_t, Confirmed> confirmed_;  // by KeyCode; kept until a committed version lists the key
  // Choices of the version in use for keys that were never called, by KeyCode.
  std::map<uint32_t, CollectiveConfig> carried_;
  std::map<uint32_t, bool> settled_;         // KeyCode to "settled by an earlier run"
  Regime fabric_of_keys_ = Regime::kNormal;  // the state of the fabric to which settled_ belongs
  // The keys that were settled before the last change of the fabric, by KeyCode and state of the fabric.
  std::map<std::pair<uint32_t, Regime>, SettledKey> settled_before_;
  TablePlan plan_;
  uint32_t version_ = 1;
  std::optional<Proposal> proposed_;
  // The three counts below count changes of the fabric: noticed, answered by a committed version, and
  // answered by the pending proposal. With counts, a change that comes while a proposal is pending is not
  // lost.
  bool regime_changed() const { return regime_changes_ != answered_changes_; }
  uint32_t regime_changes_ = 0;
  int64_t changed_ns_ = -1;  // when the last change was noticed; below 0: never
  // Average time of a step before the last change of the fabric; 0: ConfirmChange has already compared it.
  double usual_before_ns_ = 0;
  bool changed_by_steps_ = false;  // only steps have shown the change; times of calls may still show its kind
  uint32_t answered_changes_ = 0;
  uint32_t proposed_changes_ = 0;
  // Number of choices revoked because they were slower: in committed versions, and with the pending proposal
  // included.
  int revoked_by_loss_ = 0;
  int proposed_losses_ = 0;
  // Adoptions must wait until this time, on Tick's clock.
  int64_t adopt_from_ns_ = 0;
  double bytes_ = 0;  // bytes of all calls so far
  double total_ns_ = 0;
  std::array<double, kCriticalities> total_by_level_{};
  double timing_ns_ = 0;
  // Sums of StepExperiment::lost_ns and saved_ns over the job's earlier experiments.
  double lost_before_ns_ = 0;
  double saved_before_ns_ = 0;
  double credit_steps_ = kProbingCreditSteps;
  uint64_t credited_call_ = 0;  // the call at which the credit last grew, or the first experiment began
};

}  // namespace dynamiccl
