// SPDX-License-Identifier: Apache-2.0
// The files that an operator may change while a job runs: the policy and the live values. They may lie on a
// file system that is slow, or that hangs for minutes, and calls of the job wait for verdicts of the control
// server's thread. So a separate thread reads them.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "plugin/runtime/changed_policy.h"
#include "plugin/runtime/polling_thread.h"
#include "plugin/runtime/watched_values.h"

namespace dynamiccl {

// The changes of the files since the last Take.
struct ChangedFiles {
  std::shared_ptr<const Policy> policy;  // null: the policy has not changed
  AgreedValues values;                   // values with a new number
};

// Owned by the leader's SwitchLeadership. One thread calls Take, and never waits for a file.
class WatchedFiles {
 public:
  // Empty `values_path`: no file of values is watched.
  WatchedFiles(std::unique_ptr<PolicyWatch> policy, std::string values_path)
      : first_(policy->first()), policy_(std::move(policy)), values_(std::move(values_path)) {}

  // Calls `changed` on the thread that reads, whenever there is something to take. Call it before Take.
  void OnChange(std::function<void()> changed) { on_change_ = std::move(changed); }
  // Returns what has changed. The first call starts the thread, which looks at the files at once and then
  // five times a second.
  ChangedFiles Take();
  // Returns the digest of the policy that was in use at the start.
  const Sha256Digest& first_policy() const { return first_; }

 private:
  void Run();
  void Look();

  const Sha256Digest first_;
  const std::unique_ptr<PolicyWatch> policy_;  // used only by the thread
  WatchedValues values_;                       // used only by the thread
  std::mutex mutex_;                           // guards changed_
  ChangedFiles changed_;
  std::function<void()> on_change_;  // may be empty
  bool started_ = false;
  PollingThread thread_;
};

}  // namespace dynamiccl
