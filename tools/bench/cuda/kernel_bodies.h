// SPDX-License-Identifier: Apache-2.0
// The work of one thread of each GPU kernel. Tests run these functions on the host. A thread with number i of
// n handles the elements i, i + n, i + 2n and so on.
#pragma once

#include "tools/bench/checked_element.h"

namespace dynamiccl::cuda {

// Says which elements one thread handles: `first` is the thread's number among `threads`.
struct Share {
  uint64_t first = 0;
  uint64_t threads = 1;
};

// Numbers of checked and of wrong elements, summed over all threads. If the kernel did not run, looked_at is
// 0; a caller must not take this for "nothing is wrong".
struct CheckTally {
  unsigned long long looked_at = 0;
  unsigned long long wrong = 0;
};

// Writes this thread's elements of a send buffer.
DYNAMICCL_HOST_DEVICE inline void FillShare(const CheckedCall& call, int rank, std::byte* to,
                                            uint64_t elements, uint64_t element_bytes, Share share) {
  for (uint64_t i = share.first; i < elements; i += share.threads)
    element::StoreTyped(call.type, to + i * element_bytes, element::InputValue(call, rank, i));
}

// Checks this thread's elements of a receive buffer.
DYNAMICCL_HOST_DEVICE inline CheckTally CheckShare(const CheckedCall& call, int rank,
                                                   const std::byte* received, uint64_t elements,
                                                   uint64_t element_bytes, Share share) {
  CheckTally tally;
  for (uint64_t i = share.first; i < elements; i += share.threads) {
    ++tally.looked_at;
    if (element::IsWrong(call, rank, i, received + i * element_bytes)) ++tally.wrong;
  }
  return tally;
}

// The times at which a background load works: busy at the beginning of each period, idle for the rest.
struct DutyCycle {
  uint64_t period_ns = 0;
  uint64_t busy_ns = 0;
  // Nanoseconds after which the load ends by itself, in case the host does not stop it.
  uint64_t most_ns = 0;
};

DYNAMICCL_HOST_DEVICE inline bool IsOver(const DutyCycle& duty, uint64_t elapsed_ns) {
  return elapsed_ns >= duty.most_ns;
}
DYNAMICCL_HOST_DEVICE inline bool IsBusy(const DutyCycle& duty, uint64_t elapsed_ns) {
  return elapsed_ns % duty.period_ns < duty.busy_ns;
}
// Returns the nanoseconds until the load's next busy part. Call it only while the load is idle.
DYNAMICCL_HOST_DEVICE inline uint64_t IdleLeft(const DutyCycle& duty, uint64_t elapsed_ns) {
  return duty.period_ns - elapsed_ns % duty.period_ns;
}

// Number of 16-byte words that a thread of a memory load reads and writes between two reads of the clock. If
// three quarters of the multiprocessors do this, enough accesses are in flight to saturate the memory of
// every GPU so far.
inline constexpr unsigned kWordsARound = 8;

// The words of the load's buffer that one block reads and writes. All blocks together cover the buffer once.
struct Slice {
  uint64_t begin = 0;
  uint64_t end = 0;
};
DYNAMICCL_HOST_DEVICE inline Slice SliceOf(uint64_t words, uint64_t block, uint64_t blocks) {
  return {words * block / blocks, words * (block + 1) / blocks};
}

// Counters that all blocks of a load add to.
struct LoadTally {
  // Number of blocks that started.
  unsigned long long started = 0;
  // Rounds of work over all blocks. A round is the work between two reads of the clock.
  unsigned long long rounds = 0;
  // Bytes that the load has read and written.
  unsigned long long bytes = 0;
};

}  // namespace dynamiccl::cuda
