// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/polling_thread.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "plugin/border/no_throw.h"
#include "plugin/border/signal_block.h"

namespace dynamiccl {
namespace {

constexpr auto kAfterFailure = std::chrono::milliseconds(10);
constexpr int kLookMs = 10;

}  // namespace

PollingThread::PollingThread() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
    wake_read_ = UniqueFd(ends[0]);
    wake_write_ = UniqueFd(ends[1]);
  }
}

void PollingThread::Start(std::function<void()> run) {
  const SignalBlock no_signals;  // inherited by the thread: the program's handlers never run on it
  thread_ = std::thread([run = std::move(run)] {
    // `run` throws only if memory is short. Other ranks wait for this thread, so it calls `run` again as soon
    // as possible.
    while (!NoThrowOrFalse([&] { return run(), true; })) std::this_thread::sleep_for(kAfterFailure);
  });
}

void PollingThread::Wake() {
  // A full pipe means that the thread has been woken already.
  [[maybe_unused]] const ssize_t written = ::write(wake_write_.get(), "", 1);
}

void PollingThread::Stop() {
  stopping_.store(true);
  Wake();
  if (thread_.joinable()) thread_.join();
}

bool PollingThread::WaitFor(std::vector<pollfd>& descriptors, int timeout_ms) {
  // There were no descriptors for the pipe, so nothing can wake the thread; it wakes up by itself.
  if (!wake_read_.valid() && (timeout_ms < 0 || timeout_ms > kLookMs)) timeout_ms = kLookMs;
  descriptors.push_back({wake_read_.get(), POLLIN, 0});
  const bool failed = ::poll(descriptors.data(), descriptors.size(), timeout_ms) < 0;
  const bool interrupted = failed && errno == EINTR;
  descriptors.pop_back();
  if (failed) {
    for (pollfd& each : descriptors) each.revents = 0;
    // Memory or descriptors are short. Other ranks wait for this thread, so it continues as soon as possible.
    if (!interrupted) std::this_thread::sleep_for(kAfterFailure);
  }
  char woken[64];
  while (::read(wake_read_.get(), woken, sizeof(woken)) > 0) continue;
  return !stopping_.load();
}

}  // namespace dynamiccl
