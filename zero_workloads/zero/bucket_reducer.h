// SPDX-License-Identifier: Apache-2.0
// Sums gradients over the ranks in buckets of constant size, the C_B of the ZeRO paper (Rajbhandari et al.
// 2020, section 6.2): the memory for fused calls does not grow with the model.
//
// All shards of a rank, one after another, are its arena (partition.h). A bucket is a slice [begin, end) of
// the arena. It holds the gradients of that slice of every rank's arena, one rank after another, which is the
// layout that ReduceScatter expects. Two buffers alternate, so that one is filled while the other is reduced.
// If one bucket holds the whole arena, there is only one buffer.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <span>
#include <vector>

#include "zero_workloads/parallel/buffer_memory.h"
#include "zero_workloads/parallel/partition.h"
#include "zero_workloads/parallel/process_group.h"
#include "zero_workloads/zero/flat_parameters.h"

namespace dynamiccl::zero {

// Selects for which parameters a rank receives the sums of gradients.
enum class ReduceKind {
  // Stage 0: every rank receives the sums for all parameters.
  kAllReduce,
  // Stages 1 to 3: a rank receives the sums for its own shards.
  kReduceScatter,
  // Stages 1 and 2: every rank receives the sums for all parameters and keeps those for its own shards. This
  // sends twice as much as kReduceScatter.
  kAllReduceKeepOwn,
};

// Settings of a reducer. They are equal on all ranks, since all ranks must make the same calls.
struct BucketSettings {
  ReduceKind kind = ReduceKind::kReduceScatter;
  // Bytes of a bucket over all ranks, rounded up so that a rank's part is a multiple of kShardAlignment.
  int64_t bucket_bytes = 0;
  // If true, a bucket holds exactly one unit, of any size: gradients of several units are not fused, and
  // `bucket_bytes` is not used. If ranks own whole units, buckets always work in this way.
  bool by_unit = false;
  // If false, the reducer waits for each bucket before it returns.
  bool overlap = true;
  // For tests: a bucket is filled with NaN once it was sent and read, until new gradients overwrite it.
  bool poison = false;
  // Hybrid sharding: the ranks that hold the same shard. As soon as the sums of a bucket have arrived, they
  // are summed over these ranks while later buckets are filled. Null if there are no replicas.
  ProcessGroup* replicas = nullptr;
  // The memory of the buffers and of the sums.
  BufferMemory memory = BufferMemory::kOrdinary;
};

// Reduces the gradients of one backward pass after another. The engine owns it and calls it on the thread of
// the backward pass. All ranks must add the same units in the same order, or the collectives do not match; a
// failed call throws as ProcessGroup does.
class BucketReducer {
 public:
  // The partition, the group and the replicas must outlive the reducer. `options` are data type and device of
  // the gradients while they are summed. The constructor allocates the buffers and the sums.
  BucketReducer(const Partition& partition, ProcessGroup* group, const BucketSettings& settings,
                const at::TensorOptions& options);

  // Copies the unit's gradients into buckets and sends each bucket that is full. Each unit must be added once
  // in a pass, from the last unit to the first.
  void Add(int unit, const FlatParameters& parameters);
  // Waits until all sums of this pass have arrived. Call it after all units were added, or if none was.
  void Finish();

  // Sets the bytes of a bucket from the next pass on. If the size changes, the buffers are allocated anew.
  // Must not be called between Add and Finish, nor with `by_unit`.
  void SetBucketBytes(int64_t bucket_bytes);

  // The sums of the latest pass over ranks and replicas, for this rank's shards (its arena). With kAllReduce,
  // the sums for the arenas of all ranks, one after another. Valid from Finish() until the next Add().
  const at::Tensor& gradients() const { return gradients_; }

 private:
  // One of the two buffers, and the gradients that it holds.
  struct Bucket {
    // [world * capacity_] elements, of which the first world * (end - begin) are used.
    at::Tensor buffer;
    // The bucket holds the gradients for elements [begin, end) of each rank's arena (its shards,
    // partition.h).
    int64_t begin = 0, end = 0;
    // The last collective that uses `buffer`, and the group that has issued it.
    PendingCollective pending;
    ProcessGroup* pending_over = nullptr;
  };

  // Allocates one buffer if one bucket holds the whole arena, otherwise two.
  void AllocateBuffers();
  // Begins a new bucket if one starts at this position of the arena, which lies in `unit`. Otherwise the
  // present bucket continues.
  void OpenAt(int64_t position, const UnitPartition& unit);
  // Sums the unit's gradients to the rank that owns the unit whole.
  void ReduceToOwner(int unit, const FlatParameters& parameters);
  // Ends the sending of the present bucket and switches to the other buffer. If overlap is off, first waits
  // for the bucket's sums.
  void AfterSend();
  // Starts the reduction of the present bucket and switches to the other buffer.
  void Send();
  // Waits for the bucket's reduction, if one is pending, and moves its sums to `gradients_`.
  void Settle(Bucket* bucket);
  // Returns the tensor in which the first collective of the bucket puts the sums for this rank's shards.
  at::Tensor OwnSums(const Bucket& bucket) const;
  // Issues the sum over the replicas, which starts after the first collective of the bucket. Does not wait
  // for it.
  void SumOverReplicas(Bucket* bucket);
  // Waits for all sums over replicas that this pass has started.
  void AwaitReplicas();
  // Copies the sums from a bucket to `gradients_` after its AllReduce: those for the shards of all ranks
  // (stage 0), or those for this rank's shards (kAllReduceKeepOwn).
  void KeepSums(const Bucket& bucket);

  const Partition& partition_;
  ProcessGroup* group_;
  BucketSettings settings_;
  // Number of elements that a full bucket has for each rank.
  int64_t capacity_;
  // Data type and device in which gradients are summed.
  at::TensorOptions options_;
  at::Tensor gradients_;
  std::array<Bucket, 2> buckets_;
  // Pending sums over replicas in this pass that use `gradients_` alone and no buffer.
  std::vector<PendingCollective> replica_sums_;
  // The number of buffers in use, 1 or 2.
  size_t buffers_ = 2;
  // Index of the buffer that is being filled.
  size_t current_ = 0;
};

}  // namespace dynamiccl::zero
