// SPDX-License-Identifier: Apache-2.0
// Yields the core, and notices when that hands it to strangers.
#pragma once

namespace dynamiccl::hostccl {

// Among our own ranks a yield returns within a microsecond; beside a busy stranger it returns after the
// stranger's whole time slice (2 to 8 ms), while a futex wake-up takes 40 us. So a thread whose yields take
// long stops yielding for a while. One a thread (Mine).
class YieldGauge {
 public:
  static YieldGauge& Mine();

  // True while waiting should sleep rather than yield.
  bool crowded() const { return sleeps_left_ > 0; }
  void Yield();
  // To be called when a sleep took the place of yields.
  void NoteSleep() { sleeps_left_ -= sleeps_left_ > 0 ? 1 : 0; }

 private:
  int sleeps_left_ = 0;
};

}  // namespace dynamiccl::hostccl
