// SPDX-License-Identifier: Apache-2.0
// The futex calls of a doorbell, and short sleeps that end on time. See doorbell.h.
#include "src/transport/doorbell.h"

#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace dynamiccl {
namespace {

// In nanoseconds. A sleep shorter than 5 ms waits for an arrival over an emulated link and must end on time.
// A longer sleep only ends in order to check whether peers are alive.
constexpr int64_t kExactNs = 5'000'000;

// Sets the thread's timer slack to 1 ns while this object lives. The slack is the time by which the kernel
// may end a timed sleep late: 50 us by default, as long as two latencies of an emulated link. The destructor
// restores the old value, because the thread may be the user's.
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
  // The flag FUTEX_PRIVATE is not set, since the waker may be another process.
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
