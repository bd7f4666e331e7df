// SPDX-License-Identifier: Apache-2.0
// Time as int64 nanoseconds of CLOCK_MONOTONIC; behind an interface where tests must tick it.
#pragma once

#include <cstdint>

namespace dynamiccl {

// Nanoseconds of CLOCK_MONOTONIC, comparable between processes of one machine. About 20 to 60 ns a call.
int64_t MonotonicNanoseconds();
// Nanoseconds since 1970 (CLOCK_REALTIME): only to anchor traces, never to measure.
int64_t RealtimeNanoseconds();

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t Now() const = 0;
};

class SteadyClock final : public Clock {
 public:
  int64_t Now() const override { return MonotonicNanoseconds(); }
};

}  // namespace dynamiccl
