// SPDX-License-Identifier: Apache-2.0
// Counts the calls and the decisions, in numbers that only grow: which calls a tuner can change, who decides
// the others, and what the policy's LSTM recognised.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "src/collective/collective_call.h"
#include "src/collective/coverage.h"
#include "src/collective/decided_by.h"
#include "src/collective/decision_key.h"

namespace dynamiccl {

// The calls of one coverage and collective.
struct CallTotals {
  uint64_t calls = 0;
  uint64_t bytes = 0;  // NCCL's totals
};

// Each communicator has a ledger. One more ledger counts the decisions whose communicator is not known. One
// thread at a time counts, without interlocked instructions, because NCCL's contract orders a communicator's
// calls. Any thread may read, and sees slightly old values.
class CallLedger {
 public:
  void CountCall(const CollectiveCall& call, Coverage coverage) {
    Totals& totals = calls_[static_cast<size_t>(coverage)][static_cast<size_t>(call.collective)];
    Grow(totals.calls, 1);
    Grow(totals.bytes, call.bytes);
  }
  void CountDecision(Collective collective, DecidedBy decided_by) {
    Grow(DecisionsOf(collective, decided_by), 1);
  }
  // Like CountDecision, for counts that several threads increase at the same time.
  void CountDecisionOfAnyThread(Collective collective, DecidedBy decided_by) {
    DecisionsOf(collective, decided_by).fetch_add(1, std::memory_order_relaxed);
  }
  // CountRecognised counts one of NCCL's questions to the tuner under the role, phase and stage that were
  // recognised. CountChange counts a call at which the job's structure changed
  // (RecognisedStructure::changed).
  void CountRecognised(const DecisionKey& key) { Grow(RecognisedOf(key.role, key.phase, key.stage), 1); }
  void CountChange() { Grow(changes_, 1); }
  // Adds the counts of another ledger.
  void Add(const CallLedger& other) {
    for (size_t i = 0; i < calls_.size(); ++i) {
      for (size_t j = 0; j < calls_[i].size(); ++j) {
        Grow(calls_[i][j].calls, other.calls_[i][j].calls.load(std::memory_order_relaxed));
        Grow(calls_[i][j].bytes, other.calls_[i][j].bytes.load(std::memory_order_relaxed));
      }
    }
    for (size_t i = 0; i < decisions_.size(); ++i) {
      for (size_t j = 0; j < decisions_[i].size(); ++j)
        Grow(decisions_[i][j], other.decisions_[i][j].load(std::memory_order_relaxed));
    }
    for (size_t i = 0; i < recognised_.size(); ++i)
      Grow(recognised_[i], other.recognised_[i].load(std::memory_order_relaxed));
    Grow(changes_, other.changes());
  }

  CallTotals Calls(Coverage coverage, Collective collective) const {
    const Totals& totals = calls_[static_cast<size_t>(coverage)][static_cast<size_t>(collective)];
    return {totals.calls.load(std::memory_order_relaxed), totals.bytes.load(std::memory_order_relaxed)};
  }
  uint64_t Decisions(Collective collective, DecidedBy decided_by) const {
    return decisions_[static_cast<size_t>(decided_by)][static_cast<size_t>(collective)].load(
        std::memory_order_relaxed);
  }
  uint64_t Recognised(Role role, Phase phase, ZeroStage stage) const {
    return recognised_[IndexOf(role, phase, stage)].load(std::memory_order_relaxed);
  }
  uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }

 private:
  using Counter = std::atomic<uint64_t>;
  struct Totals {
    Counter calls{0};
    Counter bytes{0};
  };

  static void Grow(Counter& counter, uint64_t by) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  static size_t IndexOf(Role role, Phase phase, ZeroStage stage) {
    return (static_cast<size_t>(role) * kPhases + static_cast<size_t>(phase)) * kZeroStages +
           static_cast<size_t>(stage);
  }
  Counter& RecognisedOf(Role role, Phase phase, ZeroStage stage) {
    return recognised_[IndexOf(role, phase, stage)];
  }
  Counter& DecisionsOf(Collective collective, DecidedBy decided_by) {
    return decisions_[static_cast<size_t>(decided_by)][static_cast<size_t>(collective)];
  }

  std::array<std::array<Totals, kCollectives>, kCoverages> calls_;
  std::array<std::array<Counter, kTunableCollectives>, kDeciders> decisions_{};
  std::array<Counter, size_t{kRoles} * kPhases * kZeroStages> recognised_{};  // indexed by IndexOf
  Counter changes_{0};
};

}  // namespace dynamiccl
