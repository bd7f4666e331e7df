// SPDX-License-Identifier: Apache-2.0
// The two rules by which frameworks fill gradient buckets. Sizes come in the order in which gradients arrive,
// in any unit that the caps share. Example with a cap of 4 and the sizes 3 2 3: the first rule gives {3 2}
// {3}, the second {3} {2} {3}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dynamiccl {

// The members of a bucket, as positions in the order of arrival.
using Bucket = std::vector<size_t>;

// A bucket closes once its size reaches its cap, so it may exceed the cap by up to one parameter (PyTorch,
// Megatron-LM). `first_cap` is the cap of the first bucket.
std::vector<Bucket> BucketsThatReach(std::span<const int64_t> sizes, int64_t first_cap, int64_t cap);

// If a parameter would exceed the cap, the bucket is sent before the parameter is added. A bucket thus stays
// within the cap, unless one parameter alone is larger (DeepSpeed, ColossalAI).
std::vector<Bucket> BucketsWithin(std::span<const int64_t> sizes, int64_t cap);

// The sum of the sizes in a bucket.
int64_t SumOf(const Bucket& bucket, std::span<const int64_t> sizes);

}  // namespace dynamiccl
