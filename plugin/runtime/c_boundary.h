// SPDX-License-Identifier: Apache-2.0
// The border between us and somebody's job: nothing of ours gets out as an exception.
#pragma once

#include <exception>

#include "src/base/log.h"

namespace dynamiccl {

// Runs `function`; what it throws (memory, mostly) is logged once a process and otherwise ignored.
template <typename Function>
void Guarded(Function&& function) noexcept {
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

// What `function` returns; false where it throws.
template <typename Function>
bool GuardedTrue(Function&& function) noexcept {
  bool result = false;
  Guarded([&] { result = function(); });
  return result;
}

}  // namespace dynamiccl
