// SPDX-License-Identifier: Apache-2.0
// The registry lists the coroutines that run a collective with an algorithm, one row for each pair that
// hostccl has. To add an algorithm, write its coroutine (algorithms.h), add a row here, and list the pair in
// SupportedConfigs (hostccl_constants.h).
#pragma once

#include <array>
#include <span>

#include "src/collective/algorithm.h"
#include "src/collective/collective.h"
#include "src/hostccl/algorithms/algorithms.h"

namespace dynamiccl::hostccl {

// The coroutine of an algorithm. It does this rank's part of a call on one channel.
using AlgorithmBody = Lane (*)(Primitives&, const ChannelWork&);

// One row of the table.
struct AlgorithmEntry {
  Collective collective;
  Algorithm algorithm;
  // Lanes that run side by side on a channel; the second is null for most algorithms.
  std::array<AlgorithmBody, 2> bodies;
  const char* summary;  // steps, and bytes on the wire for each rank, with n ranks and S bytes
};

// Returns the whole table.
std::span<const AlgorithmEntry> AllAlgorithms();
// Returns null if hostccl does not have the pair.
const AlgorithmEntry* FindAlgorithm(Collective collective, Algorithm algorithm);
// Returns true if the algorithm exists on a communicator of this shape, as in NCCL.
bool RunsOn(Algorithm algorithm, int n_ranks, int n_nodes);

// Returns what runs in place of the chosen algorithm under HOSTCCL_SUM=rank_order; null for collectives that
// do not reduce.
const AlgorithmEntry* FindOrderedAlgorithm(Collective collective);

}  // namespace dynamiccl::hostccl
