// SPDX-License-Identifier: Apache-2.0
// Adds what the guards of this process have learnt to the site store (DYNAMICCL_SITE_STORE). The store may
// lie on a file system that is slow, or that hangs for minutes, and calls of the job wait for verdicts of the
// control server's thread. So a separate thread does the writing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plugin/runtime/table_guard.h"

namespace dynamiccl {

// Owned by the leader's SwitchLeadership and used on its thread. A failure to write is logged once, and the
// results are written again the next time.
class StoreWriter {
 public:
  // Empty path: nothing is written.
  explicit StoreWriter(std::string path) : path_(std::move(path)) {}

  // True if there is a store to write to.
  bool writes() const { return !path_.empty(); }
  // Begins to write the guards' unsaved results on another thread. Returns false if such a write is under
  // way. Does not wait. If another process holds the store for 0.2 s, the write fails.
  bool Begin(const std::vector<std::shared_ptr<TableGuard>>& guards);
  // Waits at most `patience_ns` for the end of a write under way, and marks its results as saved. Returns
  // false if the write goes on.
  bool Finish(int64_t patience_ns);

 private:
  // A write under way, shared with the thread that writes.
  struct Job {
    SiteStore learnt;
    int64_t now_s = 0;
    Status status;
    std::atomic<bool> done{false};  // set last
  };
  // One guard's part of the write under way.
  struct Part {
    std::shared_ptr<TableGuard> guard;
    SiteStore learnt;
  };

  void WarnOnce(const Status& status);

  const std::string path_;
  std::shared_ptr<Job> job_;  // null: no write is under way
  std::vector<Part> parts_;
  bool warned_ = false;
};

}  // namespace dynamiccl
