// SPDX-License-Identifier: Apache-2.0
// The exception barrier between this object and the job. Every function that NCCL, the program or the C
// library calls runs its body through NoThrow, because an exception that reached them would end the job.
#pragma once

#include <exception>

#include "src/base/log.h"

namespace dynamiccl {

// Runs `function` on the calling thread. Drops an exception (mostly std::bad_alloc); the first one in the
// process is logged. The caller continues as if `function` had returned early, so a body must leave its state
// usable at each point that may throw.
template <typename Function>
void NoThrow(Function&& function) noexcept {
  try {
    function();
  } catch (const std::exception& error) {
    static const bool logged = (Log(LogLevel::kWarn, "left this call alone: {}", error.what()), true);
    (void)logged;
  } catch (...) {
    // pthread_cancel unwinds the stack with an exception that a handler would have to pass on. That exception
    // does not arrive here, because it does not unwind through noexcept functions.
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
