// SPDX-License-Identifier: Apache-2.0
// Ends communicators whose calls are not done in time: nobody may be waiting for them, or only for their
// future.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "zero_workloads/torch_backend/pending_work.h"

namespace dynamiccl::torch_backend {

// Any thread. Its thread starts with the first work that is not done at once, and sleeps until a deadline.
class DeadlineWatch {
 public:
  ~DeadlineWatch();
  // Does not keep the work: whoever is to complete it does.
  void Add(const c10::intrusive_ptr<PendingWork>& work);

 private:
  struct Watched {
    std::chrono::steady_clock::time_point deadline;
    c10::weak_intrusive_ptr<PendingWork> work;
  };
  void Run();
  void ForgetFinished();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Watched> works_;  // as issued
  size_t forget_at_ = 0;        // this many works: finished ones are looked for
  std::chrono::steady_clock::time_point wakes_at_ = std::chrono::steady_clock::time_point::max();
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace dynamiccl::torch_backend
