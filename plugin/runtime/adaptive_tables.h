// SPDX-License-Identifier: Apache-2.0
// Mode adaptive in this process: the thread that switches the tables of its ranks and, in the leader's
// process, the guards that propose new tables.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>

#include "plugin/runtime/control_server.h"
#include "plugin/runtime/guard_totals.h"
#include "plugin/runtime/job_settings.h"
#include "plugin/runtime/switch_thread.h"
#include "src/policy/policy.h"

namespace dynamiccl {

// Owned by the process's runtime; any thread. Nothing is switched unless the mode is adaptive. In mode
// adaptive without a policy, guards begin with NCCL's choices. If calls are not timed either, only live
// values change.
class AdaptiveTables {
 public:
  // `settings` outlives this object; `policy` is the policy at the start of the job, or null. The leader
  // proposes the live values that `own_values` returns; any thread may call `own_values`.
  AdaptiveTables(const JobSettings& settings, std::shared_ptr<const Policy> policy,
                 std::function<AgreedValues()> own_values)
      : settings_(settings), policy_(std::move(policy)), own_values_(std::move(own_values)) {}

  // Returns the thread on which this process's ranks follow their leaders. The first call starts it.
  SwitchThread& switch_thread();
  // Makes the part of a control server that leads ranks in switching; null if tables are not switched.
  std::unique_ptr<SwitchLeadership> NewLeadership();
  // Makes a guard watch a communicator whose ranks meet at `server`. The tuner's init calls this function on
  // the rank whose calls the guard is to watch. Returns false if another rank of this process is watched
  // already, or if nothing is switched.
  bool Guard(ControlServer& server, GuardSubject subject);
  // Asks the leader to propose a live value to all ranks of the communicator. Returns false if this process
  // switches nothing on it.
  bool Propose(const ControlToken& communicator, ProposedValue proposed);
  // Returns the live values that the ranks of this process have agreed on.
  AgreedValues Values() const;
  // Returns true if a guard exists in this process, so there may be results to save.
  bool has_guards();

  const GuardTotals& totals() const { return totals_; }

 private:
  const JobSettings& settings_;
  const std::shared_ptr<const Policy> policy_;
  const std::function<AgreedValues()> own_values_;
  GuardTotals totals_;
  mutable std::mutex mutex_;  // guards the members below
  std::unique_ptr<SwitchThread> switch_thread_;
  std::set<ControlToken> guarded_;  // tokens of the guarded communicators
};

}  // namespace dynamiccl
