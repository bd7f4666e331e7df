// SPDX-License-Identifier: Apache-2.0
// What is known of a communicator once it is initialised.
#pragma once

#include <cstdint>

namespace dynamiccl {

struct CommunicatorInfo {
  uint64_t id = 0;  // equal on all ranks; NCCL's commHash or commId where it is known
  int32_t rank = 0;
  int32_t n_ranks = 1;
  int32_t n_nodes = 1;
};

}  // namespace dynamiccl
