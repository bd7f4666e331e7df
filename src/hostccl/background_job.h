// SPDX-License-Identifier: Apache-2.0
// Runs the work of a group of non-blocking communicators on its own thread, so that ncclGroupEnd returns at
// once.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

// Runs one function on a new thread. The handles of the group share the job by shared_ptr. Whoever drops the
// last reference waits for the job's thread, so that must happen on another thread.
class BackgroundJob {
 public:
  BackgroundJob() = default;
  // Waits until the work has ended.
  ~BackgroundJob();
  BackgroundJob(BackgroundJob&&) = delete;

  // Starts the thread; called once. `work` runs until it ends by itself or its CancelScope tells it to stop.
  // Then `report` is called with the result, on the same thread.
  void Start(std::function<ncclResult_t()> work, std::function<void(ncclResult_t)> report);
  // Makes waits inside the work end soon. Any thread may call this.
  void Cancel() { cancelled_.store(true, std::memory_order_release); }
  // Blocks until `report` has returned. Any thread except the job's own may call this.
  void Wait() const { done_.wait(false, std::memory_order_acquire); }

  const std::atomic<bool>& cancelled() const { return cancelled_; }

 private:
  std::atomic<bool> cancelled_{false};
  // The job's thread sets this last, after `report` has returned.
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace dynamiccl::hostccl
