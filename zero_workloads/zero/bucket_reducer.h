// SPDX-License-Identifier: Apache-2.0
// Sums gradients over the ranks in buckets of constant size. A bucket is a slice of the arena: for each rank
// the gradients of its part of that slice, one rank after another, as ReduceScatter wants them. Two buffers
// alternate, so that one is filled while the other is reduced; where one holds the whole arena it is the only
// one.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <span>
#include <vector>

#include "zero_workloads/parallel/process_group.h"
#include "zero_workloads/zero/flat_parameters.h"
#include "zero_workloads/zero/partition.h"

namespace dynamiccl::zero {

enum class ReduceKind {
  kAllReduce,      // every rank gets the sum of all arenas: stage 0
  kReduceScatter,  // a rank gets the sum of its own arena: stages 1 to 3
};

struct BucketSettings {
  ReduceKind kind = ReduceKind::kReduceScatter;
  int64_t bucket_bytes = 0;  // over all ranks; rounded up to whole shard alignments
  bool by_unit = false;      // a bucket is one unit, whatever its size: no fusion, `bucket_bytes` is not used
  bool overlap = true;       // false: waits for each bucket before going on
  bool poison = false;       // a bucket that was sent and read holds NaN until it is filled again
  // Hybrid sharding: the ranks that hold the same shard, over which a bucket's sums are summed again once
  // they are awaited, while later buckets are filled; null: there are none.
  ProcessGroup* replicas = nullptr;
};

class BucketReducer {
 public:
  // All arguments outlive the reducer. `options` are those of the gradients.
  BucketReducer(const Partition& partition, ProcessGroup* group, const BucketSettings& settings,
                const at::TensorOptions& options);

  // Takes the unit's gradients; full buckets are sent. Units come in arena order, each once a pass.
  void Add(int unit, const FlatParameters& parameters);
  // Waits until all sums of this pass are there. Every unit was added, or none.
  void Finish();

  // Sum over ranks, and over replicas, of the latest pass: the own arena, or with kAllReduce all ranks'
  // arenas one after another.
  const at::Tensor& gradients() const { return gradients_; }

 private:
  struct Bucket {
    at::Tensor buffer;           // room for world x capacity
    int64_t begin = 0, end = 0;  // slice of the arena that it holds
    PendingCollective pending;
  };

  // Begins the bucket that holds this position of the unit, where it begins there.
  void OpenAt(int64_t position, const UnitPartition& unit);
  void Send();
  void Settle(Bucket* bucket);
  // Of a bucket whose ReduceScatter is done.
  void SumOverReplicas(const Bucket& bucket);
  void AwaitReplicas();
  // All ranks' sums from a bucket that was AllReduced.
  void KeepSums(const Bucket& bucket);

  const Partition& partition_;
  ProcessGroup* group_;
  BucketSettings settings_;
  int64_t capacity_;  // arena elements in a bucket
  at::Tensor gradients_;
  std::array<Bucket, 2> buckets_;
  std::vector<PendingCollective> replica_sums_;  // of this pass
  size_t buffers_ = 2;                           // in use
  size_t current_ = 0;
};

}  // namespace dynamiccl::zero
