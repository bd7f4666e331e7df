// SPDX-License-Identifier: Apache-2.0
// The guard of one communicator in a job (docs/guard.md). It joins the decisions of the leader's own rank
// with the times that ranks send, passes them to src/decision/guard, and turns the proposals into offers of
// tables.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "plugin/runtime/guard_totals.h"
#include "plugin/runtime/table_offer.h"
#include "src/cost_model/cost_model.h"
#include "src/decision/control_messages.h"
#include "src/decision/guard/guard.h"
#include "src/decision/guard/timed_calls.h"
#include "src/decision/site_store/site_store.h"
#include "src/policy/policy.h"
#include "traces/record/recorder.h"

namespace dynamiccl {

// The communicator that is guarded, and its inputs.
struct GuardSubject {
  ControlToken communicator{};
  int n_ranks = 1;
  std::shared_ptr<CallFeed> feed;
  CostModelInput input;
  bool channels_are_known = true;  // `input` has NCCL's own number of channels and not an assumed one
  SitePlace place;
  std::shared_ptr<const SiteStore> store;  // results of earlier runs at the start of the job; null: none
  bool all_timed = false;                  // the user's settings time every call
  Recorder* recorder = nullptr;            // the process's recorder; null: nothing is recorded
  // Returns the communicator's number in the trace. It is called only after the guard has received calls,
  // because the number is assigned after the tuner's init.
  std::function<uint32_t()> number_in_trace;
};

// Owned by the leader's SwitchLeadership and used only on its thread. If the rank decides faster than the
// thread reads, calls are lost and counted.
class TableGuard : public std::enable_shared_from_this<TableGuard> {
 public:
  TableGuard(GuardSubject subject, std::shared_ptr<const Policy> policy, GuardTotals& totals);

  const ControlToken& communicator() const { return subject_.communicator; }
  int reporters() const { return ReportersOf(subject_.n_ranks); }
  // Takes the times that one of the ranks sent; `reporter` is the rank's number among the ranks that report
  // times.
  void AddTimes(int reporter, std::span<const CallTime> times) { calls_.AddTimes(reporter, times); }
  // Reads the new calls, and returns an offer if there is a reason for one.
  std::optional<TableOffer> Tick(int64_t now_ns);
  // All calls below this number are to be timed. The number only rises.
  uint64_t all_timed_until() const { return all_timed_until_; }
  // Begins anew because the table of another policy is in use from this version on: results about the old
  // policy's choices do not hold for the new table.
  void Restart(std::shared_ptr<const Policy> policy, uint32_t version);
  // Returns what the run has confirmed and the site store does not have yet; `now_s` is the wall clock in
  // seconds.
  SiteStore UnsavedResults(int64_t now_s) const;
  // Notes that the site store has these results now.
  void MarkSaved(const SiteStore& learnt);

 private:
  // Holds what was observed at the last call with a key.
  struct SeenKey {
    CollectiveConfig policy_choice;
    CollectiveConfig nccls;
    ConfigMask allowed;
  };

  Guard NewGuard();
  // Returns prior knowledge of a key: the policy's choice, what to try, and what earlier runs confirmed.
  KeyKnowledge Knowledge(const TableKey& key, Regime regime) const;
  // Returns by how much a config is expected to change the steps, according to the site store or else to the
  // policy.
  std::optional<Expectation> Expected(EffectQuestion question) const;
  // Gives the guard the results of earlier runs that the site store has, before the first calls with these
  // keys.
  void ExpectWhatIsKnown();
  void ReadCalls(int64_t now_ns);
  // Orders that all calls are timed while the guard verifies a change.
  void OrderTimes();
  TableOffer Offer(Proposal proposal);
  // Handles the end of an offer: the ranks use it, or they did not agree.
  void Ended(const SwitchOutcome& outcome, const Proposal& proposal, const TablePlan& before);
  void LogVersion(const Proposal& proposal, const TablePlan& before, uint32_t version) const;
  // Adds the changes since the last update to the process's totals.
  void UpdateTotals();
  // Writes into the trace for which share of a key's time the program waits: once it is known, and again when
  // it has changed.
  void RecordWaitedShares(int64_t now_ns);

  const GuardSubject subject_;
  GuardTotals& totals_;
  std::shared_ptr<const Policy> policy_;
  TimedCalls calls_;
  std::map<uint32_t, SeenKey> seen_;
  uint32_t first_version_ = 1;  // calls of older versions used another policy
  uint64_t newest_call_ = 0;
  uint64_t all_timed_until_ = 0;
  int64_t now_ns_ = 0;    // time of the last Tick
  int64_t again_ns_ = 0;  // earliest time of the next offer after one that was not accepted
  Guard guard_;
  double added_probing_ns_ = 0;
  std::array<double, kCriticalities> added_total_ns_{};
  std::map<uint32_t, double> recorded_shares_;
  int64_t shares_from_ns_ = 0;  // when the shares are checked next
  uint64_t added_lost_ = 0;
  std::map<std::pair<uint32_t, Regime>, CollectiveConfig> kept_;  // results that the site store has
  std::map<FindingKey, uint32_t> kept_findings_;                  // steps of the findings in the site store
};

}  // namespace dynamiccl
