// SPDX-License-Identifier: Apache-2.0
// Converts NCCL's constants of the cost model between tuner versions 5 and 7, which differ by the row of
// Rubin in each bandwidth table.
#pragma once

#include "src/nccl_abi/tuner_v7.h"

namespace dynamiccl {

// Returns the constants with the row of Rubin equal to that of Blackwell, the nearest that version 5 has.
ncclTunerConstants_v7_t WithRubinRow(const ncclTunerConstants_v5_t& constants);
ncclTunerConstants_v5_t WithoutRubinRow(const ncclTunerConstants_v7_t& constants);

// Writes `from` into `to`, whose row of Rubin stays.
void KeepRubinRow(const ncclTunerConstants_v5_t& from, ncclTunerConstants_v7_t& to);

// Calls the init of a tuner of version 5 or 6 with constants of version 7, as NCCL does it: the tuner sees
// all rows but that of Rubin, and its changes are written back if it succeeds. `constants` may be null.
template <typename Tuner>
ncclResult_t InitWithoutRubinRow(const Tuner& tuner, void** context, uint64_t communicator, size_t n_ranks,
                                 size_t n_nodes, ncclDebugLogger_t logger, ncclNvlDomainInfo_v5_t* domains,
                                 ncclTunerConstants_v7_t* constants) {
  if (constants == nullptr)
    return tuner.init(context, communicator, n_ranks, n_nodes, logger, domains, nullptr);
  ncclTunerConstants_v5_t older = WithoutRubinRow(*constants);
  const ncclResult_t result = tuner.init(context, communicator, n_ranks, n_nodes, logger, domains, &older);
  if (result == ncclSuccess) KeepRubinRow(older, *constants);
  return result;
}

}  // namespace dynamiccl
