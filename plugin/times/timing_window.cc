// SPDX-License-Identifier: Apache-2.0
#include "plugin/times/timing_window.h"

#include "src/decision/guard/table_plan.h"
#include "src/nccl_abi/profiler_types.h"

namespace dynamiccl {
namespace {

// One of this many pairs of consecutive calls is timed, which is 1 % of the calls.
constexpr uint32_t kPairs = 100;
// Events of a kernel's channels need the events of their collectives as parents.
constexpr int kTimed = ncclProfileColl | ncclProfileKernelCh;

// True if the calling thread has a window open.
thread_local bool t_open = false;

}  // namespace

bool InTimingWindow(uint64_t call_number) {
  const uint64_t pair = call_number / 2;
  const auto period = static_cast<uint32_t>(pair / kPairs);
  // There is no window in the first period, so that at most 1 % of the calls are timed even in a short
  // program.
  return period > 0 && pair % kPairs == PlaceIn(kPairs, 0, period);
}

void TimingWindow::Enter() noexcept {
  if (t_open) return;
  int* const mask = mask_.load(std::memory_order_acquire);
  if (mask == nullptr) return;
  t_open = true;
  SwitchOn(*mask);
}

void TimingWindow::KeepOpen() noexcept {
  int* const mask = mask_.load(std::memory_order_acquire);
  if (mask != nullptr && !kept_open_.exchange(true)) SwitchOn(*mask);
}

void TimingWindow::SwitchOn(int& mask) noexcept {
  if (open_.fetch_add(1) != 0) return;
  const int before = std::atomic_ref(mask).fetch_or(kTimed, std::memory_order_relaxed);
  before_.store(before, std::memory_order_release);
}

void TimingWindow::Leave() noexcept {
  if (!t_open) return;
  t_open = false;
  if (open_.fetch_sub(1) != 1) return;
  // If a chained plugin has set the mask meanwhile, the plugin's value stays.
  const int before = before_.load(std::memory_order_acquire);
  int during = before | kTimed;
  std::atomic_ref(*mask_.load()).compare_exchange_strong(during, before, std::memory_order_relaxed);
}

int TimingWindow::WantedByOthers() const noexcept {
  const int before = before_.load(std::memory_order_acquire);
  int* const mask = mask_.load(std::memory_order_acquire);
  if (before < 0 || mask == nullptr) return -1;
  const bool open = open_.load(std::memory_order_acquire) != 0;
  return open ? before : before | std::atomic_ref(*mask).load(std::memory_order_relaxed);
}

bool TimingWindow::OpenOnThisThread() noexcept {
  return t_open;
}

}  // namespace dynamiccl
