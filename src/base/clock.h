// SPDX-License-Identifier: Apache-2.0
// The project's clocks. Times are int64 nanoseconds everywhere. Code whose time tests must control takes a
// `Clock`; all other code calls the functions.
#pragma once

#include <cstdint>

namespace dynamiccl {

// Returns the nanoseconds of CLOCK_MONOTONIC, comparable between the processes of one machine. One call takes
// about 20 to 60 ns.
int64_t MonotonicNanoseconds();
// Returns the nanoseconds since 1970 (CLOCK_REALTIME). Use it only to anchor traces in calendar time: it may
// be set back, so it must not measure durations.
int64_t RealtimeNanoseconds();

// A source of monotonic nanoseconds that tests replace with one that they advance themselves. The owner
// outlives every object that holds a reference to it; Now() may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t Now() const = 0;
};

// The clock of the running programs: CLOCK_MONOTONIC.
class SteadyClock final : public Clock {
 public:
  int64_t Now() const override { return MonotonicNanoseconds(); }
};

}  // namespace dynamiccl
