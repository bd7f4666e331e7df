// SPDX-License-Identifier: Apache-2.0
// Keeps the inputs of blocks between a forward pass and the backward pass that computes the blocks again.
// They are whole on every rank, partitioned over the tensor-parallel group (P_a in the ZeRO paper), or in
// host memory (P_a+cpu). See the ZeRO paper, sections 4.2.1 and 6.1.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "zero_workloads/parallel/process_group.h"
#include "zero_workloads/zero_r/contiguous_pool.h"

namespace dynamiccl::zero {

// Says how inputs are kept. It is equal on all ranks of the group.
struct ActivationStoreSettings {
  // The ranks that hold the same inputs, each of which keeps a part (the ZeRO paper's P_a). Null if each rank
  // keeps the whole input.
  ProcessGroup* divide_over = nullptr;
  // True if the kept parts lie in host memory.
  bool on_host = false;
  // If true, restoring an input also starts to restore the one that was kept before it, which a backward pass
  // needs next. This takes the memory of one more whole input.
  bool prefetch = false;
  // If positive, room for `pool_slots` inputs of `input_elements` is allocated on construction (the ZeRO
  // paper's M_D). If 0, each input is allocated separately.
  int64_t pool_slots = 0;
  int64_t input_elements = 0;
  // Type and device of the kept inputs.
  at::TensorOptions options;
};

// Bytes of the kept parts of inputs on this rank. Unused slots and guards of a pool do not count.
struct ActivationBytes {
  int64_t on_device = 0;
  int64_t on_host = 0;
};

class ActivationStore;

// One kept input, as the store holds it from Keep until its KeptActivation is destroyed.
struct StoredActivation {
  // The shape of the whole input, to which it is restored.
  std::vector<int64_t> shape;
  // The part that this rank keeps: one-dimensional and contiguous.
  at::Tensor part;
  // The number of the pool's slot that holds the part; empty without a pool.
  std::optional<size_t> slot;
  // From the start of restoring until the input is taken: the part on the device, the whole input, and the
  // gather that fills it.
  at::Tensor part_on_device, whole;
  PendingCollective gather;
};

// One kept input. Destroying it returns its place to the store, which must outlive it.
class KeptActivation {
 public:
  KeptActivation(KeptActivation&& other) noexcept;
  KeptActivation& operator=(KeptActivation&&) = delete;
  ~KeptActivation();

  // Returns the input bit by bit as it was, without gradient history. If the input is partitioned, this
  // performs an AllGather, so all ranks of the group must call Restore in the same order.
  at::Tensor Restore() const;

 private:
  friend class ActivationStore;
  using Place = std::list<StoredActivation>::iterator;
  KeptActivation(ActivationStore* store, Place place) : store_(store), place_(place) {}

  ActivationStore* store_;
  Place place_;
};

// The kept inputs of one rank. The training run owns it; forward and backward passes call it on their thread,
// one at a time.
class ActivationStore {
 public:
  explicit ActivationStore(const ActivationStoreSettings& settings);
  ActivationStore(const ActivationStore&) = delete;
  ActivationStore& operator=(const ActivationStore&) = delete;

  // Keeps `input`, which must be contiguous. A partitioned input must be equal on all ranks of the group, and
  // its number of elements must be a multiple of the number of ranks. Throws std::logic_error otherwise, or
  // if the pool has no room.
  KeptActivation Keep(const at::Tensor& input);

  // The bytes that are kept now, and the most that were kept so far.
  ActivationBytes kept() const { return kept_; }
  ActivationBytes peak() const { return peak_; }
  // Throws std::logic_error if memory outside a slot of the pool was overwritten.
  void CheckGuards() const;

 private:
  friend class KeptActivation;
  using Place = std::list<StoredActivation>::iterator;
  // Returns a flat view of this rank's part of the input.
  at::Tensor OwnPart(const at::Tensor& input) const;
  // Returns memory for a part: a slot of the pool, or new memory if there is no pool.
  at::Tensor MemoryFor(int64_t elements, StoredActivation* stored);
  // Starts to restore an input, unless that has been done. If the input is partitioned, this issues an
  // AllGather.
  void StartRestoring(StoredActivation* stored) const;
  // Starts to restore the input, and with prefetch the one before it, and returns the input.
  at::Tensor Restore(Place place);
  // Forgets an input and frees its memory.
  void Drop(Place place);
  // Adds the part's bytes to the kept bytes (sign 1) or subtracts them (sign -1).
  void Count(const at::Tensor& part, int sign);

  ActivationStoreSettings settings_;
  // The inputs that are kept, in the order in which they were kept.
  std::list<StoredActivation> stored_;
  std::unique_ptr<ContiguousPool> pool_;
  std::vector<size_t> free_slots_;
  ActivationBytes kept_, peak_;
};

}  // namespace dynamiccl::zero
