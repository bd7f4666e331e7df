// SPDX-License-Identifier: Apache-2.0
// Layout: guard, slot 0, guard, slot 1, ..., guard. A guard has at least one cache line. It also covers the
// bytes by which the slot before it is rounded up to a cache line.
#include "zero_workloads/zero_r/contiguous_pool.h"

#include <ATen/ops/all.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <stdexcept>
#include <string>

namespace dynamiccl::zero {
namespace {

// Bytes. This is one cache line, and LibTorch's alignment of host memory, so that every slot is aligned.
constexpr int64_t kGuardBytes = 64;
// No zero, one or small integer of any type contains this byte, so a guard that was overwritten with ordinary
// values is noticed.
constexpr int64_t kGuardByte = 0xA5;

bool Intact(const at::Tensor& guard) {
  return guard.view(at::kByte).eq(kGuardByte).all().item<bool>();
}

}  // namespace

ContiguousPool::ContiguousPool(const std::vector<int64_t>& slot_elements, const NewTensor& allocate) {
  const auto element_bytes = static_cast<int64_t>(allocate(0).element_size());
  const int64_t line = kGuardBytes / element_bytes;
  std::vector<int64_t> begins;
  int64_t end = line;
  for (const int64_t elements : slot_elements) {
    begins.push_back(end);
    end += (elements + line - 1) / line * line + line;
  }
  memory_ = allocate(end);
  memory_.view(at::kByte).fill_(kGuardByte);
  int64_t written_to = 0;
  for (size_t i = 0; i < slot_elements.size(); ++i) {
    slots_.push_back(Alias(begins[i], slot_elements[i]));
    guards_.push_back(Alias(written_to, begins[i] - written_to));
    written_to = begins[i] + slot_elements[i];
  }
  guards_.push_back(Alias(written_to, end - written_to));
}

at::Tensor ContiguousPool::Alias(int64_t begin, int64_t elements) const {
  at::Tensor alias = at::empty({0}, memory_.options());
  alias.set_(memory_.storage(), memory_.storage_offset() + begin, {elements}, {1});
  return alias;
}

void ContiguousPool::CheckGuards() const {
  if (Intact(at::cat(guards_))) return;  // one wait for the device
  for (size_t i = 0; i < guards_.size(); ++i) {
    if (Intact(guards_[i])) continue;
    const std::string where = i == slots_.size() ? "after the last slot" : "before slot " + std::to_string(i);
    throw std::logic_error("the guard " + where + " of a contiguous pool was written over");
  }
}

}  // namespace dynamiccl::zero
