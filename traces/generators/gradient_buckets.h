// SPDX-License-Identifier: Apache-2.0
// The two rules by which frameworks fill gradient buckets. Sizes come in the order in which gradients arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dynamiccl {

// Positions in the order of arrival.
using Bucket = std::vector<size_t>;

// A bucket closes once it holds at least its cap: it may end above it, by one parameter (PyTorch,
// Megatron-LM).
std::vector<Bucket> BucketsThatReach(std::span<const int64_t> sizes, int64_t first_cap, int64_t cap);

// A bucket is sent before the parameter that would exceed the cap: it stays at or below, unless one parameter
// alone is larger (DeepSpeed, ColossalAI).
std::vector<Bucket> BucketsWithin(std::span<const int64_t> sizes, int64_t cap);

int64_t SumOf(const Bucket& bucket, std::span<const int64_t> sizes);

}  // namespace dynamiccl
