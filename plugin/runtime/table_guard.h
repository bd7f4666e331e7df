// SPDX-License-Identifier: Apache-2.0
// The guard of one communicator in a job: on the leader's control thread it hears what its own rank decided
// and what ranks tell of their times, and offers the tables that the guard proposes (docs/guard.md).
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
  // Of the communicator; asked once the guard has heard of calls, since it is given after the tuner's init.
  std::function<uint32_t()> number_in_trace;
};

class TableGuard : public std::enable_shared_from_this<TableGuard> {
 public:
  TableGuard(GuardSubject subject, std::shared_ptr<const Policy> policy, GuardTotals& totals);

  const ControlToken& communicator() const { return subject_.communicator; }
  int tellers() const { return TellersOf(subject_.n_ranks); }
  void TakeTimes(int teller, std::span<const CallTime> times) { calls_.TakeTimes(teller, times); }
  // Takes the calls that have come, and proposes.
  std::optional<TableOffer> Tick(int64_t now_ns);
  // All calls before this one are to be timed; rises.
  uint64_t all_timed_until() const { return all_timed_until_; }
  // Another policy's own table is in use: what was known of the old one's choices says nothing of it.
  void Restart(std::shared_ptr<const Policy> policy, uint32_t version);
  // What the run has settled and is not kept yet.
  SiteStore Learnt(int64_t now_s) const;
  void LearntIsKept(const SiteStore& learnt);

 private:
  struct SeenKey {
    CollectiveConfig policy_choice;
    ConfigMask allowed;
  };

  Guard NewGuard();
  KeyKnowledge Knowledge(const TableKey& key, Regime regime) const;
  void ExpectWhatIsKnown();
  void TakeCalls(int64_t now_ns);
  void AskForTimes();
  TableOffer Offer(Proposal proposal, int64_t now_ns);
  void Ended(const SwitchOutcome& outcome, const Proposal& proposal, const TablePlan& before);
  void Say(const Proposal& proposal, const TablePlan& before, uint32_t version) const;
  void AddUp();
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
