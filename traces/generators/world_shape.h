// SPDX-License-Identifier: Apache-2.0
// The arrangement of the ranks of a generated job, and the communicators that follow from it. Example with 8
// ranks, data 4, tensor 2, shard 2: rank 5 has data index 2 and tensor index 1. Its tensor group is {4, 5},
// its data group is {1, 3, 5, 7}, its shard group is {5, 7} and its replicas are {1, 5}.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "src/base/status.h"

namespace dynamiccl {

// The ranks of one communicator differ along one axis of the arrangement.
enum class Axis : uint8_t {
  kWorld,      // all ranks
  kData,       // ranks that hold the same part of the model
  kTensor,     // ranks that share a layer
  kShard,      // hybrid sharding: the part of the data-parallel group that holds one copy
  kReplicate,  // hybrid sharding: ranks that hold the same shard
};
inline constexpr std::array kAllAxes = {Axis::kWorld, Axis::kData, Axis::kTensor, Axis::kShard,
                                        Axis::kReplicate};

std::string_view Name(Axis axis);

// The ranks of a tensor-parallel group are neighbours, and then those of a sharding group. Megatron-LM and
// PyTorch's device meshes arrange ranks in the same way, to keep the busiest groups inside a node.
struct WorldShape {
  int data = 2;
  int tensor = 1;
  int shard = 0;  // ranks of a sharding group, a divisor of `data`; 0: all data ranks

  int Ranks() const { return data * tensor; }
  int ShardRanks() const { return shard == 0 ? data : shard; }
  bool IsHybrid() const { return ShardRanks() < data; }
  // The communicator over which parameters are partitioned.
  Axis ShardAxis() const { return IsHybrid() ? Axis::kShard : Axis::kData; }
  // Number of ranks in a communicator of this axis.
  int RanksOn(Axis axis) const;
  // RankOn returns the number of `rank` in its communicator of the axis. GroupOn returns which of the axis's
  // communicators it is.
  int RankOn(Axis axis, int rank) const;
  int GroupOn(Axis axis, int rank) const;
};

// Returns an error if the numbers do not divide or are too large for a trace.
Status Check(const WorldShape& world);

}  // namespace dynamiccl
