/* SPDX-License-Identifier: Apache-2.0
 * Preloaded behind the object. The clocks then misbehave as ODD_CLOCK names:
 *   jumps   the time of day is wrong by up to an hour, differently at each call, as while somebody sets it
 *   back    the monotonic clock now and then goes back by up to 2 ms, as between cores that do not agree
 *   coarse  the monotonic clock advances only every 10 ms
 * Waits of the C library still use the kernel's clocks. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const int64_t kSecond = 1000000000;

static uint64_t Random(void) {
  static _Thread_local uint64_t state;
  if (state == 0) state = (uint64_t)(uintptr_t)&state | 1;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static int64_t Disturbed(clockid_t clock, int64_t now) {
  const char* kind = getenv("ODD_CLOCK");
  if (kind == NULL) return now;
  if (clock == CLOCK_REALTIME && strcmp(kind, "jumps") == 0)
    return now + (int64_t)(Random() % (uint64_t)(7200 * kSecond)) - 3600 * kSecond;
  if (clock != CLOCK_MONOTONIC) return now;
  if (strcmp(kind, "back") == 0 && Random() % 16 == 0) return now - (int64_t)(Random() % 2000000);
  if (strcmp(kind, "coarse") == 0) return now - now % 10000000;
  return now;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec* time) {
  const int code = (int)syscall(SYS_clock_gettime, clock, time);
  if (code != 0) return code;
  const int64_t now = Disturbed(clock, time->tv_sec * kSecond + time->tv_nsec);
  time->tv_sec = now / kSecond;
  time->tv_nsec = now % kSecond;
  return 0;
}
