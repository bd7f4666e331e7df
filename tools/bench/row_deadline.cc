// SPDX-License-Identifier: Apache-2.0
// When a row of the benchmark takes too long, the process ends by _exit, because other threads hang in NCCL
// and destructors could hang as well.
#include "tools/bench/row_deadline.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "src/base/status.h"
#include "tools/exit_code.h"

namespace dynamiccl {

using MonotonicClock = std::chrono::steady_clock;

RowDeadline::RowDeadline(std::chrono::seconds limit) : limit_(limit), end_(MonotonicClock::now() + limit) {
  if (limit.count() > 0) watcher_ = std::thread([this] { Watch(); });
}

RowDeadline::~RowDeadline() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  if (watcher_.joinable()) watcher_.join();
}

void RowDeadline::Restart() {
  const std::lock_guard lock(mutex_);
  end_ = MonotonicClock::now() + limit_;
}

void RowDeadline::Watch() {
  std::unique_lock lock(mutex_);
  while (!done_ && MonotonicClock::now() < end_) {
    const auto end = end_;
    changed_.wait_until(lock, end);
  }
  if (done_) return;
  const Error error{ErrorKind::kTimeout,
                    fmt::format("dynamiccl bench: a row took longer than {} s", limit_.count()),
                    "a larger -T, or NCCL_DEBUG=INFO to see where ranks wait"};
  fmt::print(stderr, "{}", Describe(error));
  std::fflush(nullptr);
  ::_exit(ExitCodeOf(error.kind));
}

}  // namespace dynamiccl
