// SPDX-License-Identifier: Apache-2.0
// How the ranks of a generated job are arranged, and which communicators follow from it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "src/base/status.h"

namespace dynamiccl {

// The ranks of one communicator differ along this axis of the arrangement.
enum class Axis : uint8_t {
  kWorld,      // all ranks
  kData,       // the data-parallel group: ranks that hold the same part of the model
  kTensor,     // the tensor-parallel group: ranks that share a layer
  kShard,      // hybrid sharding: the part of the data-parallel group that holds one copy
  kReplicate,  // hybrid sharding: ranks that hold the same shard
};
inline constexpr std::array kAllAxes = {Axis::kWorld, Axis::kData, Axis::kTensor, Axis::kShard,
                                        Axis::kReplicate};

std::string_view Name(Axis axis);

// Ranks of a tensor-parallel group are neighbours, then those of a sharding group: as Megatron-LM and
// PyTorch's device meshes arrange them, so that the busiest groups stay inside a node.
struct WorldShape {
  int data = 2;
  int tensor = 1;
  int shard = 0;  // ranks of a sharding group, a divisor of `data`; 0: all of them

  int Ranks() const { return data * tensor; }
  int ShardRanks() const { return shard == 0 ? data : shard; }
  bool IsHybrid() const { return ShardRanks() < data; }
  // The communicator over which parameters are partitioned.
  Axis ShardAxis() const { return IsHybrid() ? Axis::kShard : Axis::kData; }
  int RanksOn(Axis axis) const;
  // Place of a rank of the world in its communicator of the axis, and which of these communicators it is.
  int RankOn(Axis axis, int rank) const;
  int GroupOn(Axis axis, int rank) const;
};

Status Check(const WorldShape& world);

}  // namespace dynamiccl
