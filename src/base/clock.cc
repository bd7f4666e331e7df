// SPDX-License-Identifier: Apache-2.0
// clock_gettime behind the functions of clock.h.
#include "src/base/clock.h"

#include <ctime>

namespace dynamiccl {
namespace {

int64_t Read(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

int64_t MonotonicNanoseconds() {
  return Read(CLOCK_MONOTONIC);
}
int64_t RealtimeNanoseconds() {
  return Read(CLOCK_REALTIME);
}

}  // namespace dynamiccl
