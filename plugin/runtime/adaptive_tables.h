// SPDX-License-Identifier: Apache-2.0
// Mode adaptive in this process: the thread that switches its ranks' tables, and on the leading process the
// guards that propose new ones.
#pragma once

#include <memory>
#include <mutex>
#include <set>

#include "plugin/runtime/control_server.h"
#include "plugin/runtime/guard_totals.h"
#include "plugin/runtime/job_settings.h"
#include "plugin/runtime/switch_thread.h"
#include "src/policy/policy.h"

namespace dynamiccl {

// Owned by the process's runtime; any thread. In other modes and without a policy nothing is ever switched.
class AdaptiveTables {
 public:
  // `settings` outlives this object; `policy` is the one that the job began with, null without one.
  AdaptiveTables(const JobSettings& settings, std::shared_ptr<const Policy> policy)
      : settings_(settings), policy_(std::move(policy)) {}

  // The thread on which this process's ranks follow their leaders. Started by the first call.
  SwitchThread& switch_thread();
  // What a control server needs to lead ranks in switching. Null where tables stay as they are.
  std::unique_ptr<SwitchLeadership> NewLeadership();
  // Has a guard watch a communicator whose ranks meet at `server`, from the tuner's init on the rank whose
  // calls are watched. False where another rank of this process is watched already, or nothing is switched.
  bool Guard(ControlServer& server, GuardSubject subject);
  // Whether anything is guarded here, so that there may be something learnt to keep.
  bool guards_any();

  const GuardTotals& totals() const { return totals_; }

 private:
  const JobSettings& settings_;
  const std::shared_ptr<const Policy> policy_;
  GuardTotals totals_;
  std::mutex mutex_;  // guards what follows
  std::unique_ptr<SwitchThread> switch_thread_;
  std::set<ControlToken> guarded_;  // communicators
};

}  // namespace dynamiccl
