// SPDX-License-Identifier: Apache-2.0
// A verdict that is on its way: one thread resolves it, others wait for it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "src/decision/attestation.h"

namespace dynamiccl {

// A one-time event with a value, shared by the thread that talks to the leader and the threads that issue
// calls. Whoever creates one must resolve it, also on failure and abort. Wait has no time-out, because a rank
// that has pledged must not decide alone.
class PendingVerdict {
 public:
  // Sets the verdict and wakes all who wait. Only the first call counts.
  void Resolve(Verdict verdict) {
    {
      const std::lock_guard lock(mutex_);
      if (!verdict_) verdict_ = std::move(verdict);
    }
    resolved_.notify_all();
  }

  // True if Wait would not block.
  bool ready() {
    const std::lock_guard lock(mutex_);
    return verdict_.has_value();
  }

  // Blocks until there is a verdict. The reference is valid as long as this object.
  const Verdict& Wait() {
    std::unique_lock lock(mutex_);
    resolved_.wait(lock, [this] { return verdict_.has_value(); });
    return *verdict_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable resolved_;
  std::optional<Verdict> verdict_;
};

}  // namespace dynamiccl
