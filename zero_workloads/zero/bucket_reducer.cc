// SPDX-License-Identifier: Apache-2.0
// A bucket is opened (OpenAt), filled by one or more units (Add), sent (Send) and settled (Settle). Settling
// happens late, when the buffer is needed again or the pass ends, so that the reduction overlaps with the
// backward pass. With replicas, sending issues two collectives: the sum over the group and, ordered after it,
// the sum over the replicas. The backward pass waits for neither.
#include "zero_workloads/zero/bucket_reducer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "zero_workloads/memory/memory_counters.h"

namespace dynamiccl::zero {
namespace {

// The label that all sums of gradients have in traces.
constexpr CallLabel kLabel{DYNAMICCL_PHASE_BACKWARD, DYNAMICCL_ROLE_GRADIENT_REDUCE};

// Number of elements that the largest bucket has for each rank, rounded up to kShardAlignment: the shard of
// the largest unit if buckets hold units, otherwise the configured size divided by the ranks.
int64_t Capacity(const Partition& partition, const BucketSettings& settings, int64_t element_bytes) {
  if (settings.by_unit || partition.owns_whole_units()) {
    int64_t largest = 0;
    for (int unit = 0; unit < partition.units(); ++unit)
      largest = std::max(largest, partition.unit(unit).shard_elements);
    return largest;
  }
  const int64_t wanted = std::max<int64_t>(1, settings.bucket_bytes / (partition.world() * element_bytes));
  return std::min(RoundUp(wanted, kShardAlignment), partition.arena_elements());
}

}  // namespace

BucketReducer::BucketReducer(const Partition& partition, ProcessGroup* group, const BucketSettings& settings,
                             const at::TensorOptions& options)
    : partition_(partition), group_(group), settings_(settings), options_(options) {
  capacity_ = Capacity(partition, settings, static_cast<int64_t>(options.dtype().itemsize()));
  const int64_t arenas = settings.kind == ReduceKind::kAllReduce ? partition.world() : 1;
  {
    const CountAs category(MemoryCategory::kGradients);
    gradients_ = NewBuffer(arenas * partition.arena_elements(group->rank()), options, settings.memory, group);
  }
  AllocateBuffers();
}

void BucketReducer::AllocateBuffers() {
  const CountAs category(MemoryCategory::kBuckets);
  const bool whole = partition_.owns_whole_units();
  buffers_ = !whole && capacity_ == partition_.arena_elements() ? 1 : 2;
  current_ = 0;
  for (Bucket& bucket : buckets_) bucket = {};
  for (size_t i = 0; i < buffers_; ++i)
    buckets_[i].buffer =
        NewBuffer((whole ? 1 : partition_.world()) * capacity_, options_, settings_.memory, group_);
}

void BucketReducer::SetBucketBytes(int64_t bucket_bytes) {
  settings_.bucket_bytes = bucket_bytes;
  const int64_t capacity = Capacity(partition_, settings_, static_cast<int64_t>(options_.dtype().itemsize()));
  if (std::exchange(capacity_, capacity) != capacity) AllocateBuffers();
}

void BucketReducer::OpenAt(int64_t position, const UnitPartition& unit) {
  // With `by_unit` a bucket starts at the unit's offset in the arena. Otherwise buckets start at multiples of
  // the capacity.
  const int64_t begin = settings_.by_unit ? unit.arena_offset : position / capacity_ * capacity_;
  if (position != begin) return;
  const int64_t length = settings_.by_unit ? unit.shard_elements : capacity_;
  Bucket& bucket = buckets_[current_];
  Settle(&bucket);
  bucket.begin = begin;
  bucket.end = std::min(begin + length, partition_.arena_elements());
}

void BucketReducer::ReduceToOwner(int unit, const FlatParameters& parameters) {
  Bucket& bucket = buckets_[current_];
  Settle(&bucket);
  const at::Tensor input = bucket.buffer.narrow(0, 0, partition_.flat_elements(unit));
  parameters.CopyGradients(0, input);
  const Shard own = partition_.shard(unit, group_->rank());
  const at::Tensor sums = gradients_.narrow(0, own.arena_offset, own.elements);
  bucket.pending = group_->Reduce(input, sums, partition_.owner(unit), kLabel);
  bucket.pending_over = group_;
  AfterSend();
}

void BucketReducer::Add(int unit, const FlatParameters& parameters) {
  if (partition_.owns_whole_units()) return ReduceToOwner(unit, parameters);
  const auto [shard_elements, arena_offset] = partition_.unit(unit);
  for (int64_t done = 0; done < shard_elements;) {
    const int64_t position = arena_offset + done;
    OpenAt(position, partition_.unit(unit));
    const Bucket& bucket = buckets_[current_];
    const int64_t length = bucket.end - bucket.begin, here = position - bucket.begin;
    const int64_t take = std::min(shard_elements - done, length - here);
    // The bucket needs the same piece of the shard of every rank. Rank r's shard starts at r * shard_elements
    // in the unit's flat tensor.
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
  bucket.pending = settings_.kind == ReduceKind::kReduceScatter
                       ? group_->ReduceScatter(input, OwnSums(bucket), kLabel)
                       : group_->AllReduce(input, kLabel);
  bucket.pending_over = group_;
  if (settings_.replicas != nullptr) SumOverReplicas(&bucket);
  AfterSend();
}

void BucketReducer::AfterSend() {
  if (!settings_.overlap) {
    Settle(&buckets_[current_]);
    AwaitReplicas();
  }
  current_ = (current_ + 1) % buffers_;
}

at::Tensor BucketReducer::OwnSums(const Bucket& bucket) const {
  const int64_t length = bucket.end - bucket.begin;
  return settings_.kind == ReduceKind::kReduceScatter
             ? gradients_.narrow(0, bucket.begin, length)
             : bucket.buffer.narrow(0, group_->rank() * length, length);
}

void BucketReducer::SumOverReplicas(Bucket* bucket) {
  settings_.replicas->StartAfter(bucket->pending);
  PendingCollective sum = settings_.replicas->AllReduce(OwnSums(*bucket), kLabel);
  if (settings_.kind == ReduceKind::kReduceScatter) {
    replica_sums_.push_back(std::move(sum));
    return;
  }
  bucket->pending = std::move(sum);
  bucket->pending_over = settings_.replicas;
}

void BucketReducer::AwaitReplicas() {
  for (const PendingCollective& sum : replica_sums_) settings_.replicas->Await(sum);
  replica_sums_.clear();
}

void BucketReducer::Settle(Bucket* bucket) {
  if (bucket->pending.event == nullptr) return;
  bucket->pending_over->Await(bucket->pending);
  bucket->pending = {};
  if (settings_.kind != ReduceKind::kReduceScatter) KeepSums(*bucket);
  if (settings_.poison) bucket->buffer.fill_(std::numeric_limits<float>::quiet_NaN());
}

void BucketReducer::KeepSums(const Bucket& bucket) {
  const int64_t length = bucket.end - bucket.begin;
  if (settings_.kind == ReduceKind::kAllReduceKeepOwn) {
    gradients_.narrow(0, bucket.begin, length).copy_(OwnSums(bucket));
    return;
  }
  gradients_.view({partition_.world(), -1})
      .narrow(1, bucket.begin, length)
      .copy_(bucket.buffer.narrow(0, 0, partition_.world() * length).view({partition_.world(), length}));
}

void BucketReducer::Finish() {
  // Settles both buckets, the older one first.
  Settle(&buckets_[current_]);
  Settle(&buckets_[1 - current_]);
  AwaitReplicas();
}

}  // namespace dynamiccl::zero
