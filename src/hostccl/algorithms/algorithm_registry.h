// SPDX-License-Identifier: Apache-2.0
// The registry lists the coroutines that run a collective with an algorithm. It has one row for each pair of
// collective and algorithm that hostccl has. To add an algorithm, write its coroutine (algorithms.h), add a
// row here, and list the pair of algorithm and protocol in SupportedConfigs (hostccl_constants.h).
#pragma once

#include <array>
#include <span>

#include "src/collective/algorithm.h"
#include "src/collective/collective.h"
#include "src/hostccl/algorithms/algorithms.h"

namespace dynamiccl::hostccl {

// The coroutine of an algorithm. It does this rank's part of a call on one channel.
using AlgorithmBody = Lane (*)(Primitives&, const ChannelWork&);

// One row of the registry.
struct AlgorithmEntry {
  Collective collective;
  Algorithm algorithm;
  // The coroutines that run side by side on a channel. The second is null for most algorithms.
  std::array<AlgorithmBody, 2> bodies;
  const char* summary;  // steps, and bytes on the wire for each rank, with n ranks and S bytes
};

// Returns all rows of the registry.
std::span<const AlgorithmEntry> AllAlgorithms();
// Returns the row for this pair, or null if hostccl does not have the pair.
const AlgorithmEntry* FindAlgorithm(Collective collective, Algorithm algorithm);
// Returns true if the algorithm exists on a communicator with so many ranks and nodes. The rules are NCCL's.
bool RunsOn(Algorithm algorithm, int n_ranks, int n_nodes);

// Returns the row that replaces the chosen algorithm under HOSTCCL_SUM=rank_order; null for collectives that
// do not reduce.
const AlgorithmEntry* FindOrderedAlgorithm(Collective collective);

}  // namespace dynamiccl::hostccl
