// SPDX-License-Identifier: Apache-2.0
// The guard of one communicator in a job (docs/guard.md): joins what the leader's own rank decided with the
// times that ranks send, has src/decision/guard judge them, and turns what it proposes into offers of tables.
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

// What is guarded.
struct GuardSubject {
  ControlToken communicator{};
  int n_ranks = 1;
  std::shared_ptr<CallFeed> feed;
  CostModelInput input;
  SitePlace place;
  std::shared_ptr<const SiteStore> store;  // what is known when the job begins; null: nothing
  bool all_timed = false;                  // the user has every call timed
  Recorder* recorder = nullptr;            // of the process; null: nothing is recorded
  // Of the communicator; read once the guard has received calls, since it is given after the tuner's init.
  std::function<uint32_t()> number_in_trace;
};

// Owned by the leader's SwitchLeadership and used on its thread alone. Loses calls, and counts them, where
// the rank decides faster than the thread reads.
class TableGuard : public std::enable_shared_from_this<TableGuard> {
 public:
  TableGuard(GuardSubject subject, std::shared_ptr<const Policy> policy, GuardTotals& totals);

  const ControlToken& communicator() const { return subject_.communicator; }
  int tellers() const { return TellersOf(subject_.n_ranks); }
  // The times that one of the ranks sent; `teller` numbers these ranks.
  void AddTimes(int teller, std::span<const CallTime> times) { calls_.TakeTimes(teller, times); }
  // Reads the calls that have come, and proposes a table where there is reason to.
  std::optional<TableOffer> Tick(int64_t now_ns);
  // All calls before this one are to be timed; rises.
  uint64_t all_timed_until() const { return all_timed_until_; }
  // Begins anew, because another policy's own table is in use from this version on: what was known of the old
  // one's choices says nothing of it.
  void Restart(std::shared_ptr<const Policy> policy, uint32_t version);
  // What the run has confirmed and is not in the site store yet; `now_s` is the wall clock's.
  SiteStore Learnt(int64_t now_s) const;
  // That is in the site store now.
  void LearntIsKept(const SiteStore& learnt);

 private:
  // What the last call of a key showed.
  struct SeenKey {
    CollectiveConfig policy_choice;
    ConfigMask allowed;
  };

  Guard NewGuard();
  // What is known of a key beside its calls: the policy's choice, what to try, what earlier runs confirmed.
  KeyKnowledge Knowledge(const TableKey& key, Regime regime) const;
  // Has the guard use what earlier runs confirmed, before the first calls of these keys.
  void ExpectWhatIsKnown();
  void ReadCalls(int64_t now_ns);
  // Has all calls timed while the guard verifies a change.
  void OrderTimes();
  TableOffer Offer(Proposal proposal, int64_t now_ns);
  // An offer ended: the ranks use it, or they did not agree.
  void Ended(const SwitchOutcome& outcome, const Proposal& proposal, const TablePlan& before);
  void LogVersion(const Proposal& proposal, const TablePlan& before, uint32_t version) const;
  // Adds what came since the last time to the totals of the process.
  void UpdateTotals();
  // Writes into the trace how much of a key's time the program waits for: once it is known, and again when it
  // has moved.
  void RecordWaitedShares(int64_t now_ns);

  const GuardSubject subject_;
  GuardTotals& totals_;
  std::shared_ptr<const Policy> policy_;
  TimedCalls calls_;
  std::map<uint32_t, SeenKey> seen_;
  uint32_t first_version_ = 1;  // calls of older ones are another policy's
  uint64_t newest_call_ = 0;
  uint64_t all_timed_until_ = 0;
  int64_t now_ns_ = 0;    // of the last Tick
  int64_t again_ns_ = 0;  // after an offer that was not taken
  Guard guard_;
  double added_probing_ns_ = 0;
  std::array<double, kCriticalities> added_total_ns_{};
  std::map<uint32_t, double> recorded_shares_;
  int64_t shares_from_ns_ = 0;  // when they are looked at next
  uint64_t added_lost_ = 0;
  std::map<std::pair<uint32_t, Regime>, CollectiveConfig> kept_;  // what was learnt
};

}  // namespace dynamiccl
