// SPDX-License-Identifier: Apache-2.0
// Receives signals by sigtimedwait and installs no signal handler, so that no code runs in the
// middle of other code.
#include "tools/launch/signal_scope.h"

#include <unistd.h>

#include <algorithm>

#include "src/base/clock.h"

namespace dynamiccl {
namespace {

bool IsIgnored(int signal_number) {
  struct sigaction action {};
  return ::sigaction(signal_number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// Signals that ask for the program's end. Linux keeps an ignored signal for a thread that blocks it, so an
// ignored SIGHUP must not be blocked. An ignored SIGINT is blocked: background commands of a shell script
// ignore SIGINT, but whoever sends SIGINT to such a command by `kill` wants it to end.
sigset_t Interrupts() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal_number : {SIGINT, SIGTERM}) ::sigaddset(&signals, signal_number);
  if (!IsIgnored(SIGHUP)) ::sigaddset(&signals, SIGHUP);
  return signals;
}

sigset_t WatchedSignals() {
  sigset_t signals = Interrupts();
  ::sigaddset(&signals, SIGCHLD);
  return signals;
}

}  // namespace

SignalScope::SignalScope() {
  const sigset_t watched = WatchedSignals();
  ::pthread_sigmask(SIG_BLOCK, &watched, &before_);
}

SignalScope::~SignalScope() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

ReceivedSignal WaitForSignal(int64_t deadline_ns) {
  const sigset_t watched = WatchedSignals();
  siginfo_t info{};
  const int64_t left = std::max<int64_t>(0, deadline_ns - MonotonicNanoseconds());
  const timespec timeout{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
  const int received = ::sigtimedwait(&watched, &info, deadline_ns == 0 ? nullptr : &timeout);
  // An interrupted wait, for example by a debugger that attaches, counts as "nothing happened".
  if (received <= 0) return {};
  // A terminal that is gone, such as that of a lost ssh connection, sends SIGHUP to its session's leader
  // alone.
  const bool to_leader_alone = received == SIGHUP && ::getsid(0) == ::getpid();
  return {received, received != SIGCHLD && info.si_code == SI_KERNEL && !to_leader_alone};
}

int ReceivePendingInterrupt() {
  const sigset_t interrupts = Interrupts();
  const timespec at_once{};
  return std::max(0, ::sigtimedwait(&interrupts, nullptr, &at_once));
}

void RestoreDefaultSignals() {
  const sigset_t watched = WatchedSignals();
  ::pthread_sigmask(SIG_UNBLOCK, &watched, nullptr);
}

}  // namespace dynamiccl
