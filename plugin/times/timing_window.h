// SPDX-License-Identifier: Apache-2.0
// When NCCL's profiler is switched on, by its activation mask: only around calls that are to be timed,
// because stamping kernels costs time, and never for calls that a CUDA graph captures.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// Whether a call is timed where no guard says which calls it needs: two in a row of every 200 of a
// communicator, by call number. That is 1 %, the same calls on all ranks, at places that differ from one 200
// to the next, since programs repeat their calls.
bool InTimingWindow(uint64_t call_number);

// Owned by CollectiveTimes, one for the process as NCCL's mask is. Any thread: the mask is switched on while
// at least one thread has its window open. Without a mask, before NCCL has called us as its profiler, windows
// do nothing.
class TimingWindow {
 public:
  // NCCL's mask, one number for the process, valid as long as the process; from a profiler's init.
  void UseMask(int* mask) { mask_.store(mask, std::memory_order_release); }

  // The calling thread issues a call that is to be timed: NCCL reads the mask when it takes it, in a group
  // long before it launches it.
  void Enter() noexcept;
  // The call has been taken.
  void Leave() noexcept;
  // The kinds of events that a chained plugin wanted when a window last opened, and those that it wants now;
  // all of them before the first window.
  int WantedByOthers() const noexcept;
  // Whether the calling thread's calls are timed now.
  static bool OpenOnThisThread() noexcept;

 private:
  std::atomic<int*> mask_{nullptr};
  std::atomic<int> open_{0};     // threads in a window
  std::atomic<int> before_{-1};  // the mask when a window last opened: a chained plugin's
};

}  // namespace dynamiccl
