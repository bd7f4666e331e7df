// SPDX-License-Identifier: Apache-2.0
#include "zero_workloads/zero/bucket_reducer.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace dynamiccl::zero {
namespace {

constexpr CallLabel kLabel{DYNAMICCL_PHASE_BACKWARD, DYNAMICCL_ROLE_GRADIENT_REDUCE};

}  // namespace

BucketReducer::BucketReducer(const Partition& partition, ProcessGroup* group, const BucketSettings& settings,
                             const at::TensorOptions& options)
    : partition_(partition), group_(group), settings_(settings) {
  const int64_t bytes_per_position = partition.world() * static_cast<int64_t>(options.dtype().itemsize());
  capacity_ =
      std::min(RoundUp(std::max<int64_t>(1, settings.bucket_bytes / bytes_per_position), kShardAlignment),
               partition.arena_elements());
  const int64_t arenas = settings.kind == ReduceKind::kAllReduce ? partition.world() : 1;
  gradients_ = at::empty({arenas * partition.arena_elements()}, options);
  for (Bucket& bucket : buckets_) bucket.buffer = at::empty({partition.world() * capacity_}, options);
}

void BucketReducer::Open(int64_t arena_position) {
  Bucket& bucket = buckets_[current_];
  Settle(&bucket);
  bucket.begin = arena_position;
  bucket.end = std::min(arena_position + capacity_, partition_.arena_elements());
}

void BucketReducer::Add(int unit, const FlatParameters& parameters) {
  const auto [shard_elements, arena_offset] = partition_.unit(unit);
  for (int64_t done = 0; done < shard_elements;) {
    const int64_t position = arena_offset + done;
    if (position % capacity_ == 0) Open(position);
    const Bucket& bucket = buckets_[current_];
    const int64_t length = bucket.end - bucket.begin, here = position - bucket.begin;
    const int64_t take = std::min(shard_elements - done, length - here);
    for (int64_t rank = 0; rank < partition_.world(); ++rank) {
      parameters.CopyGradients(rank * shard_elements + done,
                               bucket.buffer.narrow(0, rank * length + here, take));
    }
    done += take;
    if (here + take == length) Send();
  }
}

void BucketReducer::Send() {
  Bucket& bucket = buckets_[current_];
  const int64_t length = bucket.end - bucket.begin;
  const at::Tensor input = bucket.buffer.narrow(0, 0, partition_.world() * length);
  bucket.pending = settings_.kind == ReduceKind::kAllReduce
                       ? group_->AllReduce(input, kLabel)
                       : group_->ReduceScatter(input, gradients_.narrow(0, bucket.begin, length), kLabel);
  if (!settings_.overlap) Settle(&bucket);
  current_ = 1 - current_;
}

void BucketReducer::Settle(Bucket* bucket) {
  if (bucket->pending.event == nullptr) return;
  group_->Await(bucket->pending);
  bucket->pending = {};
  if (settings_.kind == ReduceKind::kReduceScatter) return;
  const int64_t length = bucket->end - bucket->begin;
  gradients_.view({partition_.world(), -1})
      .narrow(1, bucket->begin, length)
      .copy_(bucket->buffer.narrow(0, 0, partition_.world() * length).view({partition_.world(), length}));
}

void BucketReducer::Finish() {
  // The older bucket first.
  Settle(&buckets_[current_]);
  Settle(&buckets_[1 - current_]);
}

}  // namespace dynamiccl::zero
