// SPDX-License-Identifier: Apache-2.0
// The futex calls of a doorbell, and exact short sleeps. See doorbell.h.
#include "src/transport/doorbell.h"

#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace dynamiccl {
namespace {

// Nanoseconds. Sleeps shorter than 5 ms wait for arrivals over emulated links and must end on time; longer
// ones only check whether peers are alive.
constexpr int64_t kExactNs = 5'000'000;

// Sets the thread's timer slack to 1 ns while it lives. The kernel may end a timed sleep late by the slack,
// 50 us by default, which is as long as two latencies of an emulated link. The thread may be the user's, so
// its value is restored.
class NoTimerSlack {
 public:
  NoTimerSlack() : before_(::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)) { Set(1); }
  ~NoTimerSlack() {
    if (before_ > 0) Set(static_cast<unsigned long>(before_));
  }

 private:
  static void Set(unsigned long ns) { ::prctl(PR_SET_TIMERSLACK, ns, 0, 0, 0); }

  int before_;
};

void Wait(std::atomic<uint32_t>* word, uint32_t value, const timespec& timeout) {
  // Without FUTEX_PRIVATE, since the waker may be another process.
  ::syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, nullptr, 0);
}

}  // namespace

uint32_t Doorbell::Arm() {
  const uint32_t value = rings.load(std::memory_order_acquire);
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  return value;
}

void Doorbell::Sleep(uint32_t armed, int64_t timeout_ns) {
  const timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  if (timeout_ns < kExactNs) {
    const NoTimerSlack exact;
    Wait(&rings, armed, timeout);
  } else {
    Wait(&rings, armed, timeout);
  }
  Disarm();
}

void Doorbell::Wake() {
  rings.fetch_add(1, std::memory_order_release);
  ::syscall(SYS_futex, &rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace dynamiccl
