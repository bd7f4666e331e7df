// SPDX-License-Identifier: Apache-2.0
// The way of a communicator's decided calls from the thread that issues them to the leader's control thread:
// one writer, one reader, without allocation, lock or system call. What does not fit is lost and counted.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/collective/legal_configs.h"
#include "src/decision/guard/guarded_call.h"

namespace dynamiccl {

// One question about a call, as it was answered on the leader's rank.
struct DecidedCall {
  uint64_t number = 0;  // of the call on its communicator
  TableKey key;
  CallUse use = CallUse::kChoice;
  CollectiveConfig config;         // kLeaveNcclAlone: NCCL's own
  CollectiveConfig policy_choice;  // of the table, without what the version says beside it
  ConfigMask allowed;              // what NCCL offers on every rank; empty: not agreed yet
  uint32_t version = 0;
  uint16_t events = 1;        // collectives of this kind in the call
  bool timed = false;         // the ranks that tell times have their windows open
  bool captured = false;      // into a CUDA graph
  bool on_suspicion = false;  // as in GuardedCall
  int64_t issued_ns = 0;
};

class CallFeed {
 public:
  // The issuing thread.
  void Push(const DecidedCall& call) {
    const uint64_t written = written_.load(std::memory_order_relaxed);
    if (written - read_.load(std::memory_order_acquire) == kPlaces) {
      lost_.store(lost_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return;
    }
    calls_[written % kPlaces] = call;
    written_.store(written + 1, std::memory_order_release);
  }
  // The reader; false when there is none.
  bool Pop(DecidedCall& call) {
    const uint64_t read = read_.load(std::memory_order_relaxed);
    if (read == written_.load(std::memory_order_acquire)) return false;
    call = calls_[read % kPlaces];
    read_.store(read + 1, std::memory_order_release);
    return true;
  }
  // Any thread.
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  // A tenth of a second, between two looks of the reader, of calls that take 50 us each; 100 KB.
  static constexpr size_t kPlaces = 2048;

  alignas(64) std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> lost_{0};
  alignas(64) std::atomic<uint64_t> read_{0};
  std::array<DecidedCall, kPlaces> calls_;
};

}  // namespace dynamiccl
