// SPDX-License-Identifier: Apache-2.0
// Signals as values: blocked for the life of a scope and taken one by one.
#pragma once

#include <csignal>
#include <cstdint>

namespace dynamiccl {

// Blocks SIGCHLD, SIGINT, SIGTERM and SIGHUP in the calling thread and restores the mask at the end. Only for
// programs whose other threads block these signals too, or that have none.
class SignalScope {
 public:
  SignalScope();
  ~SignalScope();
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

 private:
  sigset_t before_;
};

// The next of the scope's signals, or 0 when CLOCK_MONOTONIC reaches `deadline_ns` (0: no deadline).
int WaitForSignal(int64_t deadline_ns);

// For a child between fork and exec: as if no scope had been there.
void RestoreDefaultSignals();

}  // namespace dynamiccl
