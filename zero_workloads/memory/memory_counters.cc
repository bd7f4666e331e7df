// SPDX-License-Identifier: Apache-2.0
// A process-wide table of all blocks with their sizes and categories, with running sums and peaks. Every
// allocation takes one mutex and one hash insertion.
#include "zero_workloads/memory/memory_counters.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace dynamiccl::zero {
namespace {

// One allocation in the ledger.
struct Block {
  int64_t bytes = 0;
  MemoryCategory category = MemoryCategory::kWorking;
};

void Add(MemoryUse& use, int64_t bytes) {
  use.current += bytes;
  use.peak = std::max(use.peak, use.current);
}

// The blocks of the process and the sums over them. `by_category` and `total` equal the sums over `blocks_`
// whenever the mutex is free.
class Ledger {
 public:
  void Book(const void* block, Block made) {
    const std::lock_guard lock(mutex_);
    blocks_[block] = made;
    Add(Of(made.category), made.bytes);
    Add(counters_.total, made.bytes);
    period_peak_ = std::max(period_peak_, counters_.total.current);
  }

  void Free(const void* block) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(block);
    if (found == blocks_.end()) return;
    Of(found->second.category).current -= found->second.bytes;
    counters_.total.current -= found->second.bytes;
    blocks_.erase(found);
  }

  void Move(const void* block, MemoryCategory category) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(block);
    if (found == blocks_.end()) return;
    Of(found->second.category).current -= found->second.bytes;
    found->second.category = category;
    Add(Of(category), found->second.bytes);
  }

  void NoteActivationsKept() {
    const std::lock_guard lock(mutex_);
    counters_.activations_kept =
        std::max(counters_.activations_kept, Of(MemoryCategory::kActivations).current);
  }

  MemoryCounters Read() {
    const std::lock_guard lock(mutex_);
    return counters_;
  }

  int64_t TakePeriodPeak() {
    const std::lock_guard lock(mutex_);
    return std::exchange(period_peak_, counters_.total.current);
  }

 private:
  MemoryUse& Of(MemoryCategory category) { return counters_.by_category[static_cast<size_t>(category)]; }

  std::mutex mutex_;
  std::unordered_map<const void*, Block> blocks_;
  MemoryCounters counters_;
  int64_t period_peak_ = 0;
};

// The ledger is never destroyed, because static tensors may be freed at any time before the process ends.
Ledger& TheLedger() {
  static Ledger* const ledger = new Ledger;
  return *ledger;
}

// The innermost CountAs of this thread. LibTorch's own threads have none, so their blocks count as working
// memory.
thread_local MemoryCategory category_of_thread = MemoryCategory::kWorking;

}  // namespace

const char* Name(MemoryCategory category) {
  // Names in the order of the enumerators.
  constexpr const char* kNames[kMemoryCategories] = {"parameters", "gradients",   "master",      "moments",
                                                     "buckets",    "activations", "checkpoints", "gathered",
                                                     "offload",    "working"};
  return kNames[static_cast<size_t>(category)];
}

MemoryCounters ReadMemoryCounters() {
  return TheLedger().Read();
}

void NoteActivationsKept() {
  TheLedger().NoteActivationsKept();
}

int64_t TakePeriodPeak() {
  return TheLedger().TakePeriodPeak();
}

CountAs::CountAs(MemoryCategory category) : outer_(std::exchange(category_of_thread, category)) {}

CountAs::~CountAs() {
  category_of_thread = outer_;
}

void Recount(const at::Tensor& tensor, MemoryCategory category) {
  if (tensor.defined()) TheLedger().Move(tensor.storage().data(), category);
}

void BookAllocation(const void* block, int64_t bytes) {
  if (block != nullptr) TheLedger().Book(block, {bytes, category_of_thread});
}

void BookFree(const void* block) {
  TheLedger().Free(block);
}

}  // namespace dynamiccl::zero
