// SPDX-License-Identifier: Apache-2.0
#include "src/transport/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace dynamiccl {

uint32_t Doorbell::Arm() {
  const uint32_t value = rings.load(std::memory_order_acquire);
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  return value;
}

void Doorbell::Sleep(uint32_t armed, int64_t timeout_ns) {
  const timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  // Not FUTEX_PRIVATE: the waker may be another process.
  ::syscall(SYS_futex, &rings, FUTEX_WAIT, armed, &timeout, nullptr, 0);
  Disarm();
}

void Doorbell::Wake() {
  rings.fetch_add(1, std::memory_order_release);
  ::syscall(SYS_futex, &rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace dynamiccl
