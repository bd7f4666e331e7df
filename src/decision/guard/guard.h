// SPDX-License-Identifier: Apache-2.0
// The guard of one communicator, on its leader: it watches what the table costs compared with NCCL's choice
// and proposes versions that revoke, try or adopt. It never decides a call: what it proposes holds from the
// call on that all ranks agree to (docs/switching.md). docs/guard.md says what it promises. No clock, socket
// or thread: calls and times are handed in, in the order of calls. Equal input, equal proposals.
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

// Between two adoptions; revocations never wait.
inline constexpr int64_t kGuardAdoptionSpacingNs = 5'000'000'000;
// What trials and timing may cost beside ProbingBudgetNs, before there is any: calls
// a key, for all keys together.
inline constexpr double kProbingCreditCalls = 1;
// Of what adopted choices are shown to save, so much may be spent on more trials.
inline constexpr double kProbingOfSavings = 0.5;

// Of blocks in which keys that the program does not wait for are compared; the first step is left out.
inline constexpr uint32_t kStepsOfBlock = 6;

// A change of the fabric is verified over so many steps, of which each has the same calls, but not for
// longer; over 16 calls in a job with one key.
inline constexpr int64_t kVerifiedSteps = 8;
inline constexpr int64_t kVerifiedNs = 2'000'000'000;

// What is known of a key when it is first seen, and when the fabric changed.
struct KeyKnowledge {
  CollectiveConfig policy_choice;             // kLeaveNcclAlone: none
  std::vector<ProbeCandidate> candidates;     // best first
  std::optional<CollectiveConfig> confirmed;  // by an earlier run: used at once, nothing is tried
};
using KnowledgeOf = std::function<KeyKnowledge(const TableKey& key, Regime regime)>;

enum class GuardReason : uint8_t {
  kSlowerThanNccl,  // a key's choice lost more than allowed, or is slower by the test
  kRegimeChanged,
  kDoubt,         // samples speak against a choice, not yet enough: they become dense again
  kTrialBarred,   // a trial above 3x its prediction is taken out
  kBudgetSpent,   // all trials end
  kFewerTrials,   // trials that are no gain are taken out, for the others to come sooner
  kSearch,        // trials begin
  kAdopt,         // a trial becomes the choice
  kConfirmed,     // what an earlier run found becomes the choice
  kSearchEnded,   // no trial was better, or the program does not wait for the key
  kCompare,       // keys that the program does not wait for are compared by blocks of steps
  kCompared,      // steps are no slower with the table
  kFasterTrials,  // they cost less than was thought, or more can be paid for
};
inline constexpr int kGuardReasons = 13;
std::string_view Name(GuardReason reason);

struct Proposal {
  bool revocation = false;                    // before everything else, and exempt from the spacing
  GuardReason reason = GuardReason::kSearch;  // the gravest
  TablePlan plan;
  // Of its keys, by KeyCode: never called, with what was settled at a size near it.
  std::set<uint32_t> carried{};
};

struct GuardOptions {
  // Keys with less than this share of the communication time are not worth trials.
  double least_share = 0.005;
  // Share of a call's time that timing it costs; charged to the budget.
  double timing_cost = 0;
  // Calls of the communicator from a trial's call to the first call without it: its time becomes known, the
  // ranks agree on a version.
  uint32_t switch_calls = 32;
  // What was settled at a size goes into the plan for sizes near it that were never called.
  bool carries = true;
};

// A key whose search ended, and in which state of the fabric it did.
struct SettledKey {
  TableKey key;
  Regime fabric = Regime::kNormal;
  CollectiveConfig choice;
  std::optional<double> ratio;  // GuardedKey::Ratio
  uint32_t pairs = 0;           // that it is of
  bool by_earlier_run = false;
};

class Guard {
 public:
  Guard(GuardOptions options, KnowledgeOf knowledge);

  // An earlier run found this: it becomes the choice at once, before the key's first call.
  void Expect(const TableKey& key, const CollectiveConfig& confirmed);
  void TakeCall(const GuardedCall& call);
  // At most one proposal is on the way.
  std::optional<Proposal> Tick(int64_t now_ns);
  void Committed(uint32_t version, int64_t now_ns);
  // It is proposed again when there is still a reason.
  void Failed() { proposed_.reset(); }

  const TablePlan& plan() const { return plan_; }
  uint32_t version() const { return version_; }
  Regime fabric() const { return detector_.fabric(); }
  const TimingDetector& detector() const { return detector_; }
  const StepPeriod& steps() const { return steps_; }
  const StepEffects& effects() const { return effects_; }
  // By what trials and samples do to steps.
  Criticality CriticalityOf(const TableKey& key) const { return effects_.LevelOf(KeyCode(key)); }
  // A change is suspected: more calls should be timed.
  bool wants_more_times() const { return detector_.verifying() || pace_.wants_times(); }
  const std::map<uint32_t, GuardedKey>& keys() const { return keys_; }
  // Keys that were ever captured: without samples, so without a promise.
  std::vector<TableKey> Unguarded() const;
  double probing_ns() const { return probing_ns_; }
  // What choices that paired samples show to be faster than NCCL's have saved.
  double saved_ns() const { return saved_ns_; }
  double total_ns() const { return total_ns_; }
  // Of it, the calls of keys of this level, as it was known then.
  double total_ns(Criticality level) const { return total_by_level_[static_cast<size_t>(level)]; }
  // A search of this key ended, or an earlier run's did.
  bool Settled(const TableKey& key) const { return settled_.contains(KeyCode(key)); }
  // In each state of the fabric that this run saw. Captured keys are not among them.
  std::vector<SettledKey> AllSettled() const;

 private:
  GuardedKey& KeyOf(const TableKey& key);
  void TakeStepOf(const GuardedCall& call, const GuardedKey& key);
  void Account(const GuardedCall& call, GuardedKey& key);
  void Detect(const GuardedCall& call);
  double CallOfEachKeyNs() const;
  double BudgetNs() const;
  // What trials may cost now.
  double CreditNs() const { return BudgetNs() - probing_ns_; }
  bool IsCostly(const GuardedKey& key) const { return key.searching() && !key.only_winner_left(); }
  // How often trials are made, by what they may cost and what there is to pay for them.
  void PaceTrials(TablePlan& plan) const;
  // Trials cost less than was thought, or more can be paid for: they could come twice as often.
  bool CanGoFaster();
  bool WorthTrials(const GuardedKey& key) const;
  // Judged by steps, not by its own times.
  bool Hidden(const GuardedKey& key) const { return CriticalityOf(key.key()) == Criticality::kHidden; }
  bool JudgedBySteps(const GuardedKey& key) const;
  bool MustRevoke(const GuardedKey& key) const;
  bool CanCompare(const GuardedKey& key) const;
  // The comparison has its answer, or will never have one: steps are others, or a key is waited for after
  // all.
  bool ComparisonIsOver() const;
  bool MustCompare(const GuardedKey& key) const;
  bool TrialsAreOver(const GuardedKey& key) const { return key.search_ended() || Hidden(key); }
  std::vector<SettledKey> SettledNow() const;
  void Relearn();
  bool Wins(const GuardedKey& key) const { return key.Winner() != nullptr && !Hidden(key); }
  // A key in the next version: as it is, then as what happened asks for.
  CollectiveConfig ChoiceNext(const GuardedKey& key, bool adopt) const;
  std::vector<CollectiveConfig> TrialsNext(const GuardedKey& key, const CollectiveConfig& choice,
                                           GuardReason reason, bool adopt) const;
  KeyPlan EntryOf(const GuardedKey& key, GuardReason reason, bool adopt) const;
  bool InBlocksNext(const GuardedKey& key, GuardReason reason) const;
  // The entry ends the key's trials, with a winner or without.
  bool EndsSearch(const GuardedKey& key, const KeyPlan& entry, GuardReason reason) const;
  void AddCarried(Proposal& proposal) const;
  uint16_t PauseOf(const GuardedKey& key) const;
  bool IsSteadyWith(const GuardedKey& key, const KeyPlan& entry) const;
  Proposal Propose(bool revocation, GuardReason reason);
  void TakeUp(const KeyPlan& entry, GuardReason reason);
  void TakeUpUnlisted(const std::set<uint32_t>& listed);
  std::optional<GuardReason> WhyRevoke() const;
  // How far the keys' trials are, together.
  struct Search {
    bool comparing = false;  // by blocks of steps
    bool can_compare = false;
    bool searching = false;
    bool can_begin = false;  // a key is worth trials that it does not have
    bool winner = false;
    bool ended = false;     // a key's trials are over, whatever they said
    double decided_ns = 0;  // time of keys whose trials have an answer
    double open_ns = 0;     // and of those that wait for theirs
    int ready = 0;          // keys with a winner
    int hopeful = 0;        // keys that may have one yet
  };
  Search SearchOfKeys() const;
  bool WinnersWait(const Search& search, int64_t now_ns);
  std::optional<GuardReason> WhyAdopt(int64_t now_ns);

  GuardOptions options_;
  KnowledgeOf knowledge_;
  TimingDetector detector_;
  PaceWatch pace_;
  StepPeriod steps_;
  StepEffects effects_;
  uint32_t version_of_steps_ = 0;
  std::map<uint32_t, GuardedKey> keys_;
  struct Confirmed {
    TableKey key;
    CollectiveConfig config;
  };
  std::map<uint32_t, Confirmed> confirmed_;       // not used yet
  std::map<uint32_t, CollectiveConfig> carried_;  // that the version in use has for keys without a call
  std::set<uint32_t> compared_;                   // by blocks: with these choices steps are no slower
  std::map<uint32_t, bool> settled_;              // key: by an earlier run
  Regime fabric_of_keys_ = Regime::kNormal;       // in which they were settled
  // Before its last change; the code of a key, then the state of the fabric.
  std::map<std::pair<uint32_t, Regime>, SettledKey> settled_before_;
  TablePlan plan_;
  uint32_t version_ = 1;
  std::optional<Proposal> proposed_;
  bool regime_changed() const { return regime_changes_ != answered_changes_; }
  uint32_t regime_changes_ = 0;
  uint32_t answered_changes_ = 0;
  uint32_t proposed_changes_ = 0;  // that the proposal on the way answers
  int revoked_by_loss_ = 0;
  int proposed_losses_ = 0;
  uint64_t block_step_calls_ = 0;  // of the steps that blocks are made of
  int64_t adopt_from_ns_ = 0;
  int64_t ready_since_ns_ = -1;  // something could be adopted
  int64_t looked_ns_ = 0;
  int64_t waited_ns_ = 0;  // that keys have waited with it, all together
  uint64_t calls_ = 0;
  double total_ns_ = 0;
  std::array<double, kCriticalities> total_by_level_{};
  double probing_ns_ = 0;
  double refunded_ns_ = 0;  // that trials took less than the choice
  double saved_ns_ = 0;
  uint64_t paced_at_ = 0;  // call at which the pace was last looked at
};

}  // namespace dynamiccl
