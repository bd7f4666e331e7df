// SPDX-License-Identifier: Apache-2.0
// To keep an input, the store takes this rank's part, finds memory and copies the part there. To restore the
// input, it copies the part to the device, gathers all parts and reshapes the result. Parts on the host are
// copied asynchronously, in the order of the compute stream. With prefetch, the gather of the input that is
// needed next is in progress while the block of the present one is computed again.
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
    : store_(std::exchange(other.store_, nullptr)), place_(other.place_) {}

KeptActivation::~KeptActivation() {
  if (store_ != nullptr) store_->Drop(place_);
}

at::Tensor KeptActivation::Restore() const {
  return store_->Restore(place_);
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

at::Tensor ActivationStore::MemoryFor(int64_t elements, StoredActivation* stored) {
  if (pool_ == nullptr) {
    return settings_.on_host ? NewHostTensor(elements, settings_.options.dtype().toScalarType())
                             : at::empty({elements}, settings_.options);
  }
  if (free_slots_.empty() || pool_->slot(free_slots_.back()).numel() < elements) {
    throw std::logic_error(fmt::format("the pool of {} checkpoints has no room for one more of {} elements",
                                       pool_->slots(), elements));
  }
  stored->slot = free_slots_.back();
  free_slots_.pop_back();
  return pool_->slot(*stored->slot).narrow(0, 0, elements);
}

KeptActivation ActivationStore::Keep(const at::Tensor& input) {
  StoredActivation stored{.shape = input.sizes().vec()};
  const at::Tensor own = OwnPart(input);
  // If the input is neither divided nor moved to the host nor kept in a pool, the tensor itself is kept,
  // without a copy.
  const bool as_it_is = settings_.divide_over == nullptr && !settings_.on_host && pool_ == nullptr;
  stored.part = as_it_is ? own : MemoryFor(own.numel(), &stored);
  if (settings_.on_host) {
    CopyToHost(own, stored.part);
  } else if (!as_it_is) {
    stored.part.copy_(own, /*non_blocking=*/true);
  }
  Recount(stored.part, MemoryCategory::kCheckpoints);
  Count(stored.part, 1);
  return {this, stored_.insert(stored_.end(), std::move(stored))};
}

void ActivationStore::StartRestoring(StoredActivation* stored) const {
  if (stored->whole.defined()) return;
  at::Tensor part = CopyToDevice(stored->part, settings_.options.device());
  if (settings_.divide_over == nullptr) {
    stored->whole = part.view(stored->shape).detach();
    return;
  }
  stored->whole = at::empty(stored->shape, settings_.options);
  stored->gather = settings_.divide_over->AllGather(part, stored->whole, kLabel);
  stored->part_on_device = std::move(part);
}

at::Tensor ActivationStore::Restore(Place place) {
  StartRestoring(&*place);
  if (settings_.prefetch && place != stored_.begin()) StartRestoring(&*std::prev(place));
  if (settings_.divide_over != nullptr) settings_.divide_over->Await(place->gather);
  place->gather = {};
  place->part_on_device.reset();
  return std::exchange(place->whole, {});
}

void ActivationStore::Drop(Place place) {
  // A gather whose input was never taken still writes to the memory. If the gather fails, its group fails in
  // the next call too.
  if (place->gather.event != nullptr) {
    try {
      settings_.divide_over->Await(place->gather);
    } catch (const CollectiveFailure&) {
    }
  }
  Count(place->part, -1);
  if (place->slot) free_slots_.push_back(*place->slot);
  stored_.erase(place);
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
