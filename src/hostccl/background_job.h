// SPDX-License-Identifier: Apache-2.0
// What a group of non-blocking communicators does after its end: work on a thread of its own.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

class BackgroundJob {
 public:
  BackgroundJob() = default;
  // Waits for the work.
  ~BackgroundJob();
  BackgroundJob(BackgroundJob&&) = delete;

  // Once. `work` may run until it has ended by itself or sees that CancelScope says so; `report` is called
  // with its result, on the same thread.
  void Start(std::function<ncclResult_t()> work, std::function<void(ncclResult_t)> report);
  // Waits of the work end soon. Any thread.
  void Cancel() { cancelled_.store(true, std::memory_order_release); }
  // Until `report` has returned. Any thread but the job's own.
  void Wait() const { done_.wait(false, std::memory_order_acquire); }

  const std::atomic<bool>& cancelled() const { return cancelled_; }

 private:
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace dynamiccl::hostccl
