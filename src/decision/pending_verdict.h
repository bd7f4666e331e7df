// SPDX-License-Identifier: Apache-2.0
// A verdict that is on its way: one thread resolves it, others wait for it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "src/decision/attestation.h"

namespace dynamiccl {

class PendingVerdict {
 public:
  // The first call counts.
  void Resolve(Verdict verdict) {
    {
      const std::lock_guard lock(mutex_);
      if (!verdict_) verdict_ = std::move(verdict);
    }
    resolved_.notify_all();
  }

  bool ready() {
    const std::lock_guard lock(mutex_);
    return verdict_.has_value();
  }

  // Blocks until it is there.
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
