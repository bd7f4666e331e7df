// SPDX-License-Identifier: Apache-2.0
// A thread sleeps until the earliest deadline of a work. Finished works are removed from the list whenever
// its size has doubled.
#include "zero_workloads/torch_backend/deadline_watch.h"

#include <algorithm>

namespace dynamiccl::torch_backend {
namespace {

// Finished works are removed when the list holds twice the number of unfinished works plus this number. The
// cost of a removal is thus spread over many calls, however many works are unfinished. 256 entries of 16
// bytes are a page.
constexpr size_t kSpareWorks = 256;

}  // namespace

DeadlineWatch::~DeadlineWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void DeadlineWatch::Add(const c10::intrusive_ptr<PendingWork>& work) {
  if (work->isCompleted()) return;
  const std::lock_guard lock(mutex_);
  if (works_.size() >= forget_at_) ForgetFinished();
  works_.push_back({work->deadline(), c10::weak_intrusive_ptr<PendingWork>(work)});
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  if (work->deadline() < wakes_at_) changed_.notify_one();
}

void DeadlineWatch::ForgetFinished() {
  std::erase_if(works_, [](const Watched& watched) {
    const auto work = watched.work.lock();
    return work == nullptr || work->isCompleted();
  });
  forget_at_ = 2 * works_.size() + kSpareWorks;
}

void DeadlineWatch::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    ForgetFinished();
    const auto earliest = std::min_element(
        works_.begin(), works_.end(), [](const auto& a, const auto& b) { return a.deadline < b.deadline; });
    wakes_at_ = earliest == works_.end() ? std::chrono::steady_clock::time_point::max() : earliest->deadline;
    if (earliest == works_.end()) {
      changed_.wait(lock);
    } else if (const auto until = wakes_at_; std::chrono::steady_clock::now() < until) {
      changed_.wait_until(lock, until);
    } else {
      auto work = earliest->work.lock();
      works_.erase(earliest);
      lock.unlock();  // an abort waits for running functions, which may need the mutex
      if (work != nullptr) work->Expire();
      work.reset();
      lock.lock();
    }
  }
}

}  // namespace dynamiccl::torch_backend
