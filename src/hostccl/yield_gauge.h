// SPDX-License-Identifier: Apache-2.0
// Yields the core, and notices when another program gets it.
#pragma once

namespace dynamiccl::hostccl {

// Among hostccl's own ranks a yield returns within a microsecond. Beside another busy program it returns
// after that program's whole time slice (2 to 8 ms), while a futex wake-up takes 40 us. So a thread whose
// yields take long stops yielding for a while. Mine() returns the gauge of the calling thread.
class YieldGauge {
 public:
  static YieldGauge& Mine();

  // Returns true if a waiting thread should sleep and not yield.
  bool crowded() const { return sleeps_left_ > 0; }
  // Yields the core once, and measures how long that took.
  void Yield();
  // The caller reports a sleep that replaced yields.
  void NoteSleep() { sleeps_left_ -= sleeps_left_ > 0 ? 1 : 0; }

 private:
  int sleeps_left_ = 0;
};

}  // namespace dynamiccl::hostccl
