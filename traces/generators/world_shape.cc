// SPDX-License-Identifier: Apache-2.0
// A rank is data index x tensor + tensor index; a data index is replica x shard ranks + place in the shard
// group.
#include "traces/generators/world_shape.h"

namespace dynamiccl {
namespace {

// Maximum number of ranks: a record of a trace keeps a rank in 16 bits (traces/format/trace_record.h).
constexpr int64_t kMaxRanks = 32767;

}  // namespace

std::string_view Name(Axis axis) {
  constexpr std::string_view names[] = {"world", "data", "tensor", "shard", "replicate"};
  return names[static_cast<size_t>(axis)];
}

int WorldShape::RanksOn(Axis axis) const {
  switch (axis) {
    case Axis::kWorld:
      return Ranks();
    case Axis::kData:
      return data;
    case Axis::kTensor:
      return tensor;
    case Axis::kShard:
      return ShardRanks();
    case Axis::kReplicate:
      return data / ShardRanks();
  }
  return 1;
}

int WorldShape::RankOn(Axis axis, int rank) const {
  const int in_data = rank / tensor;
  switch (axis) {
    case Axis::kWorld:
      return rank;
    case Axis::kData:
      return in_data;
    case Axis::kTensor:
      return rank % tensor;
    case Axis::kShard:
      return in_data % ShardRanks();
    case Axis::kReplicate:
      return in_data / ShardRanks();
  }
  return 0;
}

int WorldShape::GroupOn(Axis axis, int rank) const {
  const int in_tensor = rank % tensor, in_data = rank / tensor;
  switch (axis) {
    case Axis::kWorld:
      return 0;
    case Axis::kData:
      return in_tensor;
    case Axis::kTensor:
      return in_data;
    case Axis::kShard:
      return in_tensor + tensor * (in_data / ShardRanks());
    case Axis::kReplicate:
      return in_tensor + tensor * (in_data % ShardRanks());
  }
  return 0;
}

Status Check(const WorldShape& world) {
  if (world.data < 1 || world.tensor < 1 || world.shard < 0)
    return MakeError(ErrorKind::kInvalidArgument, "--data-parallel, --tensor-parallel: less than one rank");
  if (static_cast<int64_t>(world.data) * world.tensor > kMaxRanks) {
    return MakeError(ErrorKind::kInvalidArgument, "{} x {} ranks: a trace has at most {}", world.data,
                     world.tensor, kMaxRanks);
  }
  if (world.shard > 0 && world.data % world.shard != 0) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "--shard-group {}: does not divide {} data-parallel ranks",
                  world.shard, world.data),
        "take a divisor of --data-parallel");
  }
  return {};
}

}  // namespace dynamiccl
