// SPDX-License-Identifier: Apache-2.0
// Receives signals as values: they are blocked while a scope lives, and WaitForSignal returns them one by
// one.
#pragma once

#include <csignal>
#include <cstdint>

namespace dynamiccl {

// Blocks SIGCHLD, SIGINT, SIGTERM and SIGHUP in the calling thread; the destructor restores the former mask.
// SIGHUP stays ignored where it is ignored, as under nohup. The kernel may deliver a signal to any thread
// that does not block it, so other threads must block these signals too, or there must be none.
//
// A program that starts several jobs holds a scope around all of them. A signal that arrives between two jobs
// then waits, and the next job is not started (see Launch).
class SignalScope {
 public:
  SignalScope();
  ~SignalScope();
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

 private:
  // Signal mask of the thread before the scope.
  sigset_t before_;
};

// A signal that this process received.
struct ReceivedSignal {
  int number = 0;  // 0: none
  // True if the kernel sent it to the whole process group of its terminal, as for Ctrl-C.
  bool from_terminal = false;
};

// Waits for the next signal of the scope. Returns none when CLOCK_MONOTONIC reaches `deadline_ns`
// (nanoseconds; 0: no deadline) or when the wait was interrupted.
ReceivedSignal WaitForSignal(int64_t deadline_ns);

// Receives a signal of the scope, other than SIGCHLD, that has arrived already. Returns its number, 0 if none
// has arrived.
int ReceivePendingInterrupt();

// Unblocks the scope's signals. A child calls it between fork and exec, since exec would keep the blocked
// mask.
void RestoreDefaultSignals();

}  // namespace dynamiccl
