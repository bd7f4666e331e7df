// SPDX-License-Identifier: Apache-2.0
// Which calls are timed: the last two of every 200 of a communicator, by call number, so at most 1 % of any
// run, the same ones on all ranks, and none that a CUDA graph captures. Between windows NCCL's profiler is
// switched off by its activation mask, because stamping kernels costs time.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

bool InTimingWindow(uint64_t call_number);

class TimingWindow {
 public:
  // NCCL's mask, one number for the process, valid as long as the process; from a profiler's init.
  void UseMask(int* mask) { mask_.store(mask, std::memory_order_release); }

  // The calling thread issues a call: NCCL reads the mask when it takes it, in a group long before it
  // launches it.
  void Enter(uint64_t call_number, cudaStream_t stream) noexcept;
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
