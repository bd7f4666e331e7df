// SPDX-License-Identifier: Apache-2.0
// The guard of one communicator, on its leader: it watches what the table costs compared with NCCL's choice
// and proposes versions that revoke, try or adopt. It never decides a call: what it proposes holds from the
// call on that all ranks agree to (docs/switching.md). docs/guard.md says what it promises. No clock, socket
// or thread: calls and times are handed in, in the order of calls. Equal input, equal proposals.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "src/collective/role.h"
#include "src/decision/guard/guarded_key.h"
#include "src/decision/guard/timing_detector.h"

namespace dynamiccl {

// Between two adoptions; revocations never wait.
inline constexpr int64_t kGuardAdoptionSpacingNs = 5'000'000'000;
// Share of communication time that trials and timing may cost.
inline constexpr double kProbingBudget = 0.01;
// And what they may cost before there is any: calls a key.
inline constexpr double kProbingCreditCalls = 40;

// A change of the fabric is verified over so many steps; over 16 calls in a job with one key.
inline constexpr int64_t kVerifiedSteps = 8;

// What is known of a key when it is first seen, and when the regime changed.
struct KeyKnowledge {
  CollectiveConfig policy_choice;             // kLeaveNcclAlone: none
  std::vector<ProbeCandidate> candidates;     // best first
  std::optional<CollectiveConfig> confirmed;  // by an earlier run: used at once, nothing is tried
};
using KnowledgeOf = std::function<KeyKnowledge(const TableKey& key, Regime regime)>;

enum class GuardReason : uint8_t {
  kSlowerThanNccl,  // a key's choice lost more than allowed, or is slower by the test
  kRegimeChanged,
  kTrialBarred,  // a trial above 3x its prediction is taken out
  kBudgetSpent,  // all trials end
  kFewerTrials,  // trials that are no gain are taken out, for the others to come sooner
  kSearch,       // trials begin
  kAdopt,        // a trial becomes the choice
  kConfirmed,    // what an earlier run found becomes the choice
};
std::string_view Name(GuardReason reason);

struct Proposal {
  bool revocation = false;                    // before everything else, and exempt from the spacing
  GuardReason reason = GuardReason::kSearch;  // the gravest
  TablePlan plan;
};

struct GuardOptions {
  // Keys with less than this share of the communication time are not worth trials.
  double least_share = 0.005;
  // Share of a call's time that timing it costs; charged to the budget.
  double timing_cost = 0;
  // Calls of the communicator from a trial's call to the first call without it: its time becomes known, the
  // ranks agree on a version.
  uint32_t switch_calls = 32;
};

class Guard {
 public:
  Guard(GuardOptions options, KnowledgeOf knowledge);

  void TakeCall(const GuardedCall& call);
  void SetStepTime(int64_t step_ns) { detector_.SetLeastSpan(kVerifiedSteps * step_ns); }
  // Hidden keys are compared by steps (block_comparison.h), not by their own times.
  void SetCriticality(const TableKey& key, Criticality criticality);
  // At most one proposal is on the way.
  std::optional<Proposal> Tick(int64_t now_ns);
  void Committed(uint32_t version, int64_t now_ns);
  // It is proposed again when there is still a reason.
  void Failed() { proposed_.reset(); }

  const TablePlan& plan() const { return plan_; }
  uint32_t version() const { return version_; }
  Regime regime() const { return detector_.regime(); }
  const TimingDetector& detector() const { return detector_; }
  // A change is suspected: more calls should be timed.
  bool wants_more_times() const { return detector_.verifying(); }
  const std::map<uint32_t, GuardedKey>& keys() const { return keys_; }
  // Keys that were ever captured: without samples, so without a promise.
  std::vector<TableKey> Unguarded() const;
  double probing_ns() const { return probing_ns_; }
  double total_ns() const { return total_ns_; }
  // A search of this key ended, or an earlier run's did.
  bool Settled(const TableKey& key) const { return settled_.contains(KeyCode(key)); }
  // Nothing: it is not settled. Else whether an earlier run's search did it.
  std::optional<bool> SettledByEarlierRun(const TableKey& key) const {
    const auto found = settled_.find(KeyCode(key));
    return found == settled_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  GuardedKey& KeyOf(const TableKey& key);
  void Account(const GuardedCall& call, GuardedKey& key);
  void Detect(const GuardedCall& call);
  double BudgetNs() const;
  bool WorthTrials(const GuardedKey& key) const;
  void Relearn();
  // Entry of a key in the next version: as it is, then as what happened asks for.
  KeyPlan EntryOf(const GuardedKey& key, bool adopt) const;
  uint32_t PauseOf(const GuardedKey& key) const;
  Proposal Propose(bool revocation, GuardReason reason);
  std::optional<GuardReason> WhyRevoke() const;
  std::optional<GuardReason> WhyAdopt(int64_t now_ns);

  const GuardOptions options_;
  const KnowledgeOf knowledge_;
  TimingDetector detector_;
  std::map<uint32_t, GuardedKey> keys_;
  std::map<uint32_t, CollectiveConfig> confirmed_;  // not used yet
  std::map<uint32_t, Criticality> criticality_;
  std::map<uint32_t, bool> settled_;  // key: by an earlier run
  TablePlan plan_;
  uint32_t version_ = 1;
  std::optional<Proposal> proposed_;
  bool regime_changed_ = false;
  int revoked_by_loss_ = 0;
  int64_t adopt_from_ns_ = 0;
  int64_t ready_since_ns_ = -1;  // something could be adopted
  uint64_t calls_ = 0;
  double total_ns_ = 0;
  double probing_ns_ = 0;
};

}  // namespace dynamiccl
