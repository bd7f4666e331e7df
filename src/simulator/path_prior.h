// SPDX-License-Identifier: Apache-2.0
// What a path costs before anything was measured: the relations that fits start from and fall back to.
#pragma once

#include "src/simulator/system.h"

namespace dynamiccl {

// Microseconds and GB/s in the relations of NCCL's own tables (2.30.7, src/graph/tuning.cc: base latencies,
// latencies of NVLink and network hops, shares of the bus that LL, LL128 and trees reach), on a node of
// 200 GB/s and a network of 20. A fit multiplies all of a kind by one factor first. Not known for CollNet.
PathCosts PriorCosts(Algorithm algorithm, Protocol protocol);

}  // namespace dynamiccl
