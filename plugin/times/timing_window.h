// SPDX-License-Identifier: Apache-2.0
// Switches NCCL's profiler on and off by its activation mask: on only around calls that are to be timed,
// because stamping kernels costs time, and never for calls that a CUDA graph captures.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// Returns true if a call is timed without a guard's plan: two calls in a row out of every 200 of a
// communicator, by call number. That is 1 %, and the same calls on all ranks. Their place among the 200
// changes, because programs repeat their calls.
bool InTimingWindow(uint64_t call_number);

// Owned by CollectiveTimes; one for the process, like NCCL's mask. Any thread: the mask is on while at least
// one thread has its window open. Windows have no effect before NCCL has called this object as its profiler
// and provided the mask.
class TimingWindow {
 public:
  // Sets NCCL's mask, a number that a profiler's init receives. It is valid until the process ends.
  void UseMask(int* mask) { mask_.store(mask, std::memory_order_release); }

  // Opens the calling thread's window, before it issues a call that is to be timed. NCCL reads the mask when
  // it accepts the call, which in a group is long before the launch.
  void Enter() noexcept;
  // Closes the window after the call was accepted.
  void Leave() noexcept;
  // Keeps the mask on from now on, for an NCCL whose stamps are right only if it profiles every call.
  void KeepOpen() noexcept;
  // Returns true if windows have an effect.
  bool has_mask() const noexcept { return mask_.load(std::memory_order_acquire) != nullptr; }
  // Returns the kinds of events that a chained plugin wanted when a window last opened, plus those that the
  // plugin wants now. Before the first window it returns all kinds.
  int WantedByOthers() const noexcept;
  // Returns true if the calling thread's window is open.
  static bool OpenOnThisThread() noexcept;

 private:
  void SwitchOn(int& mask) noexcept;

  std::atomic<int*> mask_{nullptr};
  std::atomic<int> open_{0};  // threads in a window, and one more while the mask is kept on
  std::atomic<bool> kept_open_{false};
  std::atomic<int> before_{-1};  // the mask when a window last opened, as set by a chained plugin
};

}  // namespace dynamiccl
