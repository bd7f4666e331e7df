// SPDX-License-Identifier: Apache-2.0
// Where the inputs of blocks wait between a forward pass and the backward pass that computes the blocks
// again: whole on every rank, divided over the tensor-parallel group (P_a), and in host memory (P_a+cpu).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "zero_workloads/parallel/process_group.h"
#include "zero_workloads/zero_r/contiguous_pool.h"

namespace dynamiccl::zero {

struct ActivationStoreSettings {
  ProcessGroup* divide_over =
      nullptr;  // P_a: the ranks that hold the same inputs; null: each keeps the whole
  bool on_host = false;
  // M_D: room for `pool_slots` inputs of `input_elements` is taken on construction. 0: each is allocated.
  int64_t pool_slots = 0;
  int64_t input_elements = 0;
  at::TensorOptions options;  // of the inputs
};

// Bytes of the kept parts of inputs, on this rank. A pool's unused slots and guards are not in it.
struct ActivationBytes {
  int64_t on_device = 0;
  int64_t on_host = 0;
};

class ActivationStore;

// What is kept of one input; gives its place back when it goes away. The store outlives it.
class KeptActivation {
 public:
  KeptActivation(KeptActivation&& other) noexcept;
  KeptActivation& operator=(KeptActivation&&) = delete;
  ~KeptActivation();

  // The input, without gradient history: what was kept to the bit. All ranks of the group that divides it
  // call it in the same order.
  at::Tensor Restore() const;

 private:
  friend class ActivationStore;
  KeptActivation(ActivationStore* store, std::vector<int64_t> shape)
      : store_(store), shape_(std::move(shape)) {}

  ActivationStore* store_;
  std::vector<int64_t> shape_;  // of the input
  at::Tensor part_;             // one-dimensional, contiguous
  std::optional<size_t> slot_;  // of the pool
};

class ActivationStore {
 public:
  explicit ActivationStore(const ActivationStoreSettings& settings);
  ActivationStore(const ActivationStore&) = delete;
  ActivationStore& operator=(const ActivationStore&) = delete;

  // `input` is contiguous and, where it is divided, equal on all ranks of the group and a multiple of their
  // number long. Throws std::logic_error where it is not, and where the pool has no room.
  KeptActivation Keep(const at::Tensor& input);

  ActivationBytes kept() const { return kept_; }
  ActivationBytes peak() const { return peak_; }
  // Throws std::logic_error where something wrote past a slot of the pool.
  void CheckGuards() const;

 private:
  friend class KeptActivation;
  at::Tensor OwnPart(const at::Tensor& input) const;
  // Memory for the part: a slot of the pool, or of its own.
  at::Tensor Place(int64_t elements, KeptActivation* kept);
  at::Tensor Gather(const at::Tensor& part, const std::vector<int64_t>& shape) const;
  void Count(const at::Tensor& part, int sign);

  ActivationStoreSettings settings_;
  std::unique_ptr<ContiguousPool> pool_;
  std::vector<size_t> free_slots_;
  ActivationBytes kept_, peak_;
};

}  // namespace dynamiccl::zero
