// SPDX-License-Identifier: Apache-2.0
// Carries a communicator's decided calls from the thread that issues them to the leader's control thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/zero_pages.h"
#include "src/collective/legal_configs.h"
#include "src/decision/guard/guarded_call.h"

namespace dynamiccl {

// A call and the config that the leader's rank answered when NCCL asked about the call.
struct DecidedCall {
  uint64_t number = 0;  // number of the call on its communicator
  TableKey key;
  CallUse use = CallUse::kChoice;
  CollectiveConfig config;  // what was answered; kLeaveNcclAlone: NCCL's own
  // The answer of the policy and rules, before the table version's plan changed it.
  CollectiveConfig policy_choice;
  CollectiveConfig nccls;          // algorithm and protocol that NCCL uses by itself, without its channels
  ConfigMask allowed;              // what NCCL offers on every rank; empty: the ranks have not agreed yet
  uint32_t version = 0;            // table version that answered
  uint16_t events = 1;             // collectives of this kind in the call
  bool timed = false;              // the ranks that report times measure this call
  bool stamped = false;            // the leader's rank reports when its device reached this call
  bool captured = false;           // captured into a CUDA graph
  bool on_suspicion = false;       // as in GuardedCall
  uint32_t structure_changes = 0;  // this member and the stage as in GuardedCall
  ZeroStage stage = ZeroStage::kUnknown;
  int64_t issued_ns = 0;
};

// A ring with one writer and one reader. It does not allocate, lock or make a system call, so the issuing
// thread may write it while NCCL decides a call. The communicator's record and its table guard share it
// (plugin/runtime). When the ring is full, the newest call is dropped and counted; nobody waits.
class CallFeed {
 public:
  // Issuing thread only.
  void Push(const DecidedCall& call) {
    const uint64_t written = written_.load(std::memory_order_relaxed);
    if (written - read_.load(std::memory_order_acquire) == kPlaces) {
      lost_.store(lost_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return;
    }
    calls_[written % kPlaces] = call;
    written_.store(written + 1, std::memory_order_release);
  }
  // Control thread only. Returns false and does not change `call` if the ring is empty.
  bool Pop(DecidedCall& call) {
    const uint64_t read = read_.load(std::memory_order_relaxed);
    if (read == written_.load(std::memory_order_acquire)) return false;
    call = calls_[read % kPlaces];
    read_.store(read + 1, std::memory_order_release);
    return true;
  }
  // Calls lost so far. Any thread may ask.
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  // The control thread empties the ring every tenth of a second. 2048 places hold the calls of that time if
  // each call takes 50 us or more. The ring has 128 KB, which take memory as it fills for the first time.
  static constexpr size_t kPlaces = 2048;

  // The writer's and the reader's counters lie on cache lines of their own.
  alignas(64) std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> lost_{0};
  alignas(64) std::atomic<uint64_t> read_{0};
  const ZeroPages<DecidedCall> calls_{kPlaces};
};

}  // namespace dynamiccl
