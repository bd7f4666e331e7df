// SPDX-License-Identifier: Apache-2.0
// To keep an input, the store takes this rank's part, finds a place and copies the part there. To restore the
// input, it copies the part to the device, gathers all parts and reshapes the result. Parts on the host are
// copied asynchronously, in the order of the compute stream.
#include "zero_workloads/zero_r/activation_store.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "zero_workloads/device/device.h"
#include "zero_workloads/device/host_memory.h"
#include "zero_workloads/memory/memory_counters.h"

namespace dynamiccl::zero {
namespace {

// The label of the gathers in traces. They happen in the backward pass.
constexpr CallLabel kLabel{DYNAMICCL_PHASE_BACKWARD, DYNAMICCL_ROLE_ACTIVATION};

}  // namespace

KeptActivation::KeptActivation(KeptActivation&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      shape_(std::move(other.shape_)),
      part_(std::move(other.part_)),
      slot_(other.slot_) {}

KeptActivation::~KeptActivation() {
  if (store_ == nullptr || !part_.defined()) return;
  store_->Count(part_, -1);
  if (slot_) store_->free_slots_.push_back(*slot_);
}

at::Tensor KeptActivation::Restore() const {
  const ActivationStoreSettings& settings = store_->settings_;
  const at::Tensor part = CopyToDevice(part_, settings.options.device());
  if (settings.divide_over != nullptr) return store_->Gather(part, shape_);
  return part.view(shape_).detach();
}

ActivationStore::ActivationStore(const ActivationStoreSettings& settings) : settings_(settings) {
  if (settings.pool_slots == 0) return;
  const CountAs category(MemoryCategory::kCheckpoints);
  const int64_t ranks = settings.divide_over == nullptr ? 1 : settings.divide_over->world();
  const std::vector<int64_t> slots(static_cast<size_t>(settings.pool_slots), settings.input_elements / ranks);
  pool_ = std::make_unique<ContiguousPool>(slots, [&settings](int64_t elements) {
    return settings.on_host ? NewHostTensor(elements, settings.options.dtype().toScalarType())
                            : at::empty({elements}, settings.options);
  });
  for (size_t slot = pool_->slots(); slot-- > 0;) free_slots_.push_back(slot);
}

at::Tensor ActivationStore::OwnPart(const at::Tensor& input) const {
  const at::Tensor flat = input.detach().view({-1});
  if (settings_.divide_over == nullptr) return flat;
  const int64_t ranks = settings_.divide_over->world();
  if (flat.numel() % ranks != 0) {
    throw std::logic_error(
        fmt::format("a checkpoint of {} elements cannot be divided over {} ranks", flat.numel(), ranks));
  }
  const int64_t length = flat.numel() / ranks;
  return flat.narrow(0, settings_.divide_over->rank() * length, length);
}

at::Tensor ActivationStore::Place(int64_t elements, KeptActivation* kept) {
  if (pool_ == nullptr) {
    return settings_.on_host ? NewHostTensor(elements, settings_.options.dtype().toScalarType())
                             : at::empty({elements}, settings_.options);
  }
  if (free_slots_.empty() || pool_->slot(free_slots_.back()).numel() < elements) {
    throw std::logic_error(fmt::format("the pool of {} checkpoints has no room for one more of {} elements",
                                       pool_->slots(), elements));
  }
  kept->slot_ = free_slots_.back();
  free_slots_.pop_back();
  return pool_->slot(*kept->slot_).narrow(0, 0, elements);
}

KeptActivation ActivationStore::Keep(const at::Tensor& input) {
  KeptActivation kept(this, input.sizes().vec());
  const at::Tensor own = OwnPart(input);
  // If the input is neither divided nor moved to the host nor kept in a pool, the tensor itself is kept,
  // without a copy.
  const bool as_it_is = settings_.divide_over == nullptr && !settings_.on_host && pool_ == nullptr;
  kept.part_ = as_it_is ? own : Place(own.numel(), &kept);
  if (settings_.on_host) {
    CopyToHost(own, kept.part_);
  } else if (!as_it_is) {
    kept.part_.copy_(own, /*non_blocking=*/true);
  }
  Recount(kept.part_, MemoryCategory::kCheckpoints);
  Count(kept.part_, 1);
  return kept;
}

at::Tensor ActivationStore::Gather(const at::Tensor& part, const std::vector<int64_t>& shape) const {
  const at::Tensor whole = at::empty(shape, settings_.options);
  settings_.divide_over->Await(settings_.divide_over->AllGather(part, whole, kLabel));
  return whole;
}

void ActivationStore::Count(const at::Tensor& part, int sign) {
  int64_t ActivationBytes::*const side =
      settings_.on_host ? &ActivationBytes::on_host : &ActivationBytes::on_device;
  kept_.*side += sign * static_cast<int64_t>(part.nbytes());
  peak_.*side = std::max(peak_.*side, kept_.*side);
}

void ActivationStore::CheckGuards() const {
  if (pool_ != nullptr) pool_->CheckGuards();
}

}  // namespace dynamiccl::zero
