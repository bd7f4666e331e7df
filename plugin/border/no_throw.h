// SPDX-License-Identifier: Apache-2.0
// The exception barrier between this object and somebody else's job. Every function that NCCL, the program or
// the C library calls runs its body through it: an exception of ours that reached them would end the job.
#pragma once

#include <exception>

#include "src/base/log.h"

namespace dynamiccl {

// Runs `function` on the calling thread. What it throws (std::bad_alloc, mostly) is dropped; the first such
// exception of the process is logged. The caller goes on as if `function` had returned early, so a body must
// leave its state usable at each point that may throw.
template <typename Function>
void NoThrow(Function&& function) noexcept {
  try {
    function();
  } catch (const std::exception& error) {
    static const bool logged = (Log(LogLevel::kWarn, "left this call alone: {}", error.what()), true);
    (void)logged;
  } catch (...) {
    // Cancellation of a thread is the one thing that must pass, and it does not unwind through noexcept:
    // there is none here.
  }
}

// Returns what `function` returns, or false when it throws.
template <typename Function>
bool NoThrowOrFalse(Function&& function) noexcept {
  bool result = false;
  NoThrow([&] { result = function(); });
  return result;
}

}  // namespace dynamiccl
