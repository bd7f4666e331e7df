// SPDX-License-Identifier: Apache-2.0
// What this process keeps for all communicators: settings, communicators, trace, policy, control plane. Made
// by the first NCCL call, never destroyed (threads may still be inside NCCL while the process ends), and out
// of the way in a forked child.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "plugin/chain/chained_tuner.h"
#include "plugin/profiler/collective_times.h"
#include "plugin/runtime/communicator_registry.h"
#include "plugin/runtime/control_server.h"
#include "plugin/runtime/job_settings.h"
#include "plugin/runtime/made_entries.h"
#include "plugin/runtime/metrics_file.h"
#include "plugin/runtime/pledge_sender.h"
#include "plugin/runtime/switch_thread.h"
#include "plugin/runtime/told_memory.h"
#include "src/decision/attestation.h"
#include "src/decision/decision_table.h"
#include "src/decision/override_rules.h"
#include "src/policy/policy.h"
#include "traces/record/recorder.h"

namespace dynamiccl {

// Where the ranks of a communicator that has grown meet, and its token; without a block in the id no place.
struct GrowMeeting {
  MeetingPoint place;
  ControlToken token{};
};

class ProcessRuntime {
 public:
  // Null in a forked child of a process that had one, and when it could not be made.
  static ProcessRuntime* Get() noexcept;
  // Null also as long as nothing has made it.
  static ProcessRuntime* Existing() noexcept;
  // Whether a call has asked for it, be it that it could not be made.
  static bool WasTried() noexcept;
  // The same, but null unless calls are of interest (observe with a trace, frozen): what a call asks first.
  static ProcessRuntime* Watching() noexcept;

  const JobSettings& settings() const { return settings_; }
  CommunicatorRegistry& communicators() { return communicators_; }
  const std::shared_ptr<const OverrideRules>& rules() const { return rules_; }

  // Null without one.
  const std::shared_ptr<const Policy>& policy() const { return policy_; }
  // Whether choices come from more than the policy, which is all that a user can vouch for.
  bool ChoosesBesidePolicy() const { return rules_ != nullptr || decisions_ != nullptr; }
  // Whether anybody reads what single calls were: their times of issue, and what decides them.
  bool accounts_for_calls() const { return !settings_.trace_path.empty() || !settings_.metrics_path.empty(); }
  // The policy's entries for a communicator, a pure function of what is attested; empty without a policy.
  // `constants` is null where the tuner's version does not tell them.
  EntryFunction PolicyFor(const ncclTunerConstants_v5_t* constants, int n_ranks, int n_nodes);
  // The tuner plugin that the user named; null when there is none. Loaded at the first call.
  const ChainedTuner* chained_tuner();
  // As in NCCL_PROFILER_PLUGIN before we offered ourselves; empty text: it was not set. Nothing: we did not.
  std::optional<std::string> profiler_to_chain() const { return profiler_to_chain_; }

  // Null without DYNAMICCL_TRACE, or when it cannot be written. Opened at the first communicator, whose rank
  // names the file where the launcher does not say one.
  Recorder* recorder() { return recorder_.load(std::memory_order_acquire); }
  // Opens the trace and begins to keep the metrics, where they are asked for. `rank` is the first
  // communicator's.
  void OpenFiles(int rank);
  // Decisions for which no communicator is known: any thread.
  CallLedger& ledger_of_strangers() { return ledger_of_strangers_; }
  // Writes DYNAMICCL_DECISIONS, if this process is to.
  void SaveDecisions() noexcept;

  // Whether tables are watched by times and changed: mode adaptive, unless the user switched timing off.
  bool guards_tables() const { return settings_.mode == Mode::kAdaptive && times_ != nullptr; }
  // From the tuner's init on the rank whose calls are watched; false where this process does not lead, or
  // another of its ranks is watched. The store and whether all calls are timed are filled in.
  bool GuardTable(GuardSubject subject);
  ToldMemory& memory() { return memory_; }

  // Null unless collectives are to be timed.
  CollectiveTimes* times() const { return times_.get(); }

  // NCCL reads NCCL_TUNER_PLUGIN and NCCL_PROFILER_PLUGIN at its first communicator: called before that.
  void OfferAsPlugins();
  // Why this process takes no part in choosing: its mode, a refused file, NCCL_TUNER_PLUGIN=none. Empty when
  // it does.
  std::string WhyNotChoosing() const;

  // Values that this process attests, without those that only a communicator has.
  AttestedValues Attested() const;
  // SHA-256 of the policy file in hexadecimal; empty without one.
  const std::string& policy_hash() const { return policy_hash_; }
  // Writes where ranks meet into a fresh unique id.
  void MarkUniqueId(ncclUniqueId& id);
  // Where the ranks of the communicator of this id meet; starts the rendezvous on rank 0 when the id carries
  // no address.
  MeetingPoint MeetingOf(const ncclUniqueId& id, int rank);
  // Writes into an id for ranks that join a communicator: where those that it has met, and its new name.
  void MarkGrowId(const MeetingPoint& parents, const ControlToken& grown, ncclUniqueId& id);
  // What such an id says.
  static GrowMeeting MeetingOfGrown(const ncclUniqueId& id);
  // Of a communicator whose ranks are all this process's.
  MeetingPoint MeetingInProcess(const ControlToken& token);
  // Whether ranks that meet there meet at this process.
  bool Leads(const MeetingPoint& meeting);
  // Any thread of the process that leads the communicator, in adaptive mode: all its ranks are to use this
  // table, from a call on that they agree on. False where tables stay as they are.
  bool OfferTable(const Communicator& communicator, TableOffer offer);
  // Started by the first call.
  PledgeSender& pledge_sender();
  // No call of it waits any more.
  void Release(Communicator& communicator);
  // Of adaptive mode. Started by the first call.
  SwitchThread& switch_thread();
  // What the cost model knows of a communicator; `constants` is null where NCCL does not tell them.
  static CostModelInput InputOf(const ncclTunerConstants_v5_t* constants, int n_ranks, int n_nodes);
  // The entries of PolicyFor from any policy.
  EntryFunction EntriesOf(std::shared_ptr<const Policy> policy, const CostModelInput& input);
  static EntryFunction EntriesOf(std::shared_ptr<const SavedDecisions> saved, int n_ranks, int n_nodes);
  // After a rank was missing once, nobody waits again.
  bool given_up() const { return given_up_.load(); }
  void GiveUp() { given_up_.store(true); }
  // The same of the meetings before NCCL's init.
  bool given_up_births() const { return given_up_births_.load(); }
  void GiveUpBirths() { given_up_births_.store(true); }

  // True the first time for this reason: what is said once a process.
  bool FirstTime(const std::string& reason);

 private:
  ProcessRuntime();
  static void Create();
  void OfferAsTuner();
  void OfferAsProfiler();
  void StartTiming();
  void LoadRules();
  void LoadPolicy();
  void LoadDecisions();
  void OpenTrace();
  void OpenMetrics();
  MetricsSource Metrics() const;
  ControlServer* Server(const std::vector<std::string>& hosts, uint16_t port);
  std::unique_ptr<SwitchLeadership> NewLeadership();
  std::vector<std::string> HostsToListenOn() const;
  void ServeRendezvous(const MeetingPoint& meeting);
  bool MeetsBeforeInit() const {
    return rules_ && rules_->any_about_communicators() && WhyNotChoosing().empty();
  }
  void ReadStore();
  void KeepLearnt() noexcept;

  const JobSettings settings_;
  CommunicatorRegistry communicators_;
  std::shared_ptr<const OverrideRules> rules_;
  std::string rules_state_ = "none";  // what is attested of them
  std::shared_ptr<const Policy> policy_;
  std::string golden_ = "none";  // digest of what this machine computes for the policy's golden vectors
  std::string policy_hash_;
  std::shared_ptr<const SavedDecisions> decisions_;  // in place of the policy's; null without a file
  std::array<uint8_t, 16> policy_digest_{};
  std::string broken_;  // what is wrong with the policy or the rules
  std::atomic<Recorder*> recorder_{nullptr};
  std::unique_ptr<CollectiveTimes> times_;
  CallLedger ledger_of_strangers_;
  MadeEntries made_entries_;
  GuardTotals guard_totals_;
  ToldMemory memory_;
  std::atomic<bool> given_up_{false};
  std::atomic<bool> given_up_births_{false};
  std::mutex mutex_;  // guards what follows
  bool files_opened_ = false;
  int rank_ = -1;  // of this process in its job, once files are open; -1 unknown
  bool plugins_offered_ = false;
  bool tuner_offered_ = false;
  bool chain_tried_ = false;
  std::optional<std::string> profiler_to_chain_;  // set before NCCL can ask
  std::unique_ptr<ChainedTuner> chained_;
  std::unique_ptr<ControlServer> server_;
  std::unique_ptr<PledgeSender> pledge_sender_;
  std::unique_ptr<SwitchThread> switch_thread_;
  std::set<ControlToken> guarded_;               // communicators
  std::shared_ptr<const SiteStore> site_store_;  // as the first guard found it
  std::vector<std::string> said_;
};

}  // namespace dynamiccl
