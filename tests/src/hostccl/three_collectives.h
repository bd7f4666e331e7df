// SPDX-License-Identifier: Apache-2.0
// Runs AllReduce, AllGather and ReduceScatter with any number of ranks and checks each element.
#pragma once

#include <cstddef>
#include <memory>
#include <numeric>
#include <vector>

#include "src/hostccl/launch.h"

namespace dynamiccl::testing {

// Element i of the sent data is i + rank. Element i of the result must equal `expected(i)`.
template <typename Expected>
bool RunAndCheck(const std::shared_ptr<hostccl::Communicator>& communicator,
                 hostccl::CollectiveOperation operation, size_t sent, size_t received, Expected expected) {
  std::vector<int32_t> data(sent);
  std::iota(data.begin(), data.end(), communicator->rank());
  std::vector<int32_t> result(received, -1);
  operation.send = reinterpret_cast<const std::byte*>(data.data());
  operation.recv = reinterpret_cast<std::byte*>(result.data());
  operation.data_type = DataType::kInt32;
  const hostccl::CommunicatorPlan plan{communicator, {operation}, {}, {}};
  if (hostccl::RunLaunch({&plan, 1}) != ncclSuccess) return false;
  for (size_t i = 0; i < received; ++i) {
    if (result[i] != static_cast<int32_t>(expected(i))) return false;
  }
  return true;
}

// `count` is the number of elements per rank.
inline bool ThreeCollectivesAreRight(const std::shared_ptr<hostccl::Communicator>& communicator, size_t count,
                                     const CollectiveConfig& config) {
  const auto n = static_cast<size_t>(communicator->n_ranks());
  const auto self = static_cast<size_t>(communicator->rank());
  const size_t ranks_sum = n * (n - 1) / 2;
  const auto operation = [&](Collective collective) {
    return hostccl::CollectiveOperation{.collective = collective, .count = count, .config = config};
  };
  return RunAndCheck(communicator, operation(Collective::kAllReduce), count, count,
                     [&](size_t i) { return n * i + ranks_sum; }) &&
         RunAndCheck(communicator, operation(Collective::kAllGather), count, count * n,
                     [&](size_t i) { return i % count + i / count; }) &&
         RunAndCheck(communicator, operation(Collective::kReduceScatter), count * n, count,
                     [&](size_t i) { return n * (i + self * count) + ranks_sum; });
}

}  // namespace dynamiccl::testing
