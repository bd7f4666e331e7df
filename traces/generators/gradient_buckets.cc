// SPDX-License-Identifier: Apache-2.0
// Each rule takes one pass over the sizes. The last bucket holds the sizes that remain.
#include "traces/generators/gradient_buckets.h"

namespace dynamiccl {

std::vector<Bucket> BucketsThatReach(std::span<const int64_t> sizes, int64_t first_cap, int64_t cap) {
  std::vector<Bucket> buckets;
  Bucket open;
  int64_t sum = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    open.push_back(i);
    sum += sizes[i];
    if (sum < (buckets.empty() ? first_cap : cap)) continue;
    buckets.push_back(std::move(open));
    open.clear();
    sum = 0;
  }
  if (!open.empty()) buckets.push_back(std::move(open));
  return buckets;
}

std::vector<Bucket> BucketsWithin(std::span<const int64_t> sizes, int64_t cap) {
  std::vector<Bucket> buckets;
  int64_t sum = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (buckets.empty() || sum + sizes[i] > cap) {
      buckets.emplace_back();
      sum = 0;
    }
    buckets.back().push_back(i);
    sum += sizes[i];
  }
  return buckets;
}

int64_t SumOf(const Bucket& bucket, std::span<const int64_t> sizes) {
  int64_t sum = 0;
  for (const size_t position : bucket) sum += sizes[position];
  return sum;
}

}  // namespace dynamiccl
