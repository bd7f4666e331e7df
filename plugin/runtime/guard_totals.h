// SPDX-License-Identifier: Apache-2.0
// What the guards of this process's communicators did, in numbers that only grow: for the metrics. The
// control server's thread adds, any thread reads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "src/decision/guard/guard.h"

namespace dynamiccl {

struct GuardTotals {
  std::array<std::atomic<uint64_t>, kGuardReasons> versions{};  // in use, by why
  std::atomic<uint64_t> failed{0};                              // proposals that the ranks did not agree to
  std::atomic<uint64_t> lost{0};                                // calls that the guard did not hear of
  std::atomic<uint64_t> probing_ns{0};                          // estimated cost of trials and timing
  // Estimated time of all calls, by what was known of their keys' criticality then.
  std::array<std::atomic<uint64_t>, kCriticalities> guarded_ns{};
};

}  // namespace dynamiccl
