// SPDX-License-Identifier: Apache-2.0
// The facts about a communicator that are known once it is initialised.
#pragma once

#include <cstdint>

namespace dynamiccl {

// This plain value belongs to one rank. All fields but `rank` are equal on all ranks of the communicator.
struct CommunicatorInfo {
  uint64_t id = 0;  // equal on all ranks; NCCL's commHash or commId where it is known
  int32_t rank = 0;
  int32_t n_ranks = 1;
  int32_t n_nodes = 1;
};

}  // namespace dynamiccl
