// SPDX-License-Identifier: Apache-2.0
// Counts what the guards of this process's communicators did, in numbers that only grow, for the metrics. The
// control server's thread adds; any thread reads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "src/decision/guard/guard.h"

namespace dynamiccl {

// The totals of this process, owned by its AdaptiveTables.
struct GuardTotals {
  std::array<std::atomic<uint64_t>, kGuardReasons> versions{};  // versions in use, by reason
  std::atomic<uint64_t> failed{0};                              // proposals on which the ranks did not agree
  std::atomic<uint64_t> lost{0};                                // calls that did not reach the guard
  std::atomic<uint64_t> probing_ns{0};                          // estimated cost of trials and timing
  // Estimated time of all calls, by the criticality of their keys at the time of the call.
  std::array<std::atomic<uint64_t>, kCriticalities> guarded_ns{};
};

}  // namespace dynamiccl
