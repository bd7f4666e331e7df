// SPDX-License-Identifier: Apache-2.0
// Aborts communicators whose calls do not finish in time. Waiting callers cannot do this: a program may wait
// for nothing, or only for a future.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "zero_workloads/torch_backend/pending_work.h"

namespace dynamiccl::torch_backend {

// Watches the deadlines of the works of one backend, which owns the watch. Any thread may add works. The
// watch's own thread starts with the first work that is not done at once, and sleeps until the next deadline.
class DeadlineWatch {
 public:
  ~DeadlineWatch();
  // Watches the work without keeping it alive: the thread that will complete the work keeps it alive.
  void Add(const c10::intrusive_ptr<PendingWork>& work);

 private:
  // A work and its deadline; the reference does not keep the work alive.
  struct Watched {
    std::chrono::steady_clock::time_point deadline;
    c10::weak_intrusive_ptr<PendingWork> work;
  };
  void Run();
  void ForgetFinished();

  std::mutex mutex_;
  std::condition_variable changed_;
  // Works in the order of issue.
  std::vector<Watched> works_;
  // When the list has this many works, the finished ones are removed.
  size_t forget_at_ = 0;
  // The thread sleeps until this deadline. A work with an earlier deadline must wake the thread.
  std::chrono::steady_clock::time_point wakes_at_ = std::chrono::steady_clock::time_point::max();
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace dynamiccl::torch_backend
