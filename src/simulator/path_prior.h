// SPDX-License-Identifier: Apache-2.0
// This file says what a path costs before anything was measured: the relations from which fits start and to
// which they fall back.
#pragma once

#include "src/simulator/system.h"

namespace dynamiccl {

// Microseconds and GB/s in the relations of NCCL's own tables (2.30.7, src/graph/tuning.cc): base latencies,
// latencies of NVLink and network hops, and the shares of the bus that LL, LL128 and trees reach. They are
// stated for a node of 200 GB/s and a network of 20 GB/s; a fit first multiplies all constants of a kind by
// one factor. CollNet is not known.
PathCosts PriorCosts(Algorithm algorithm, Protocol protocol);

}  // namespace dynamiccl
