// SPDX-License-Identifier: Apache-2.0
// What this process did at the NCCL boundary so far, in numbers that only grow: the coverage ledger and who
// decided. Any thread; nothing here takes a lock or allocates.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "src/collective/collective_call.h"
#include "src/collective/coverage.h"
#include "src/collective/decided_by.h"

namespace dynamiccl {

struct CallTotals {
  uint64_t calls = 0;
  uint64_t bytes = 0;  // NCCL's totals
};

class JobCounters {
 public:
  void CountCall(const CollectiveCall& call, Coverage coverage) {
    Totals& totals = calls_[static_cast<size_t>(coverage)][static_cast<size_t>(call.collective)];
    totals.calls.fetch_add(1, std::memory_order_relaxed);
    totals.bytes.fetch_add(call.bytes, std::memory_order_relaxed);
  }
  void CountDecision(Collective collective, DecidedBy decided_by) {
    decisions_[static_cast<size_t>(decided_by)][static_cast<size_t>(collective)].fetch_add(
        1, std::memory_order_relaxed);
  }

  CallTotals Calls(Coverage coverage, Collective collective) const {
    const Totals& totals = calls_[static_cast<size_t>(coverage)][static_cast<size_t>(collective)];
    return {totals.calls.load(std::memory_order_relaxed), totals.bytes.load(std::memory_order_relaxed)};
  }
  uint64_t Decisions(Collective collective, DecidedBy decided_by) const {
    return decisions_[static_cast<size_t>(decided_by)][static_cast<size_t>(collective)].load(
        std::memory_order_relaxed);
  }

 private:
  struct Totals {
    std::atomic<uint64_t> calls{0};
    std::atomic<uint64_t> bytes{0};
  };
  std::array<std::array<Totals, kCollectives>, kCoverages> calls_;
  std::array<std::array<std::atomic<uint64_t>, kTunableCollectives>, kDeciders> decisions_{};
};

}  // namespace dynamiccl
