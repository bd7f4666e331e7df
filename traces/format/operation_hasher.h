// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "traces/format/trace_calls.h"

namespace dynamiccl {

// Computes the OperationHash of calls that pass one by one, in order of issue. The hasher holds 32 bytes for
// each call.
class OperationHasher {
 public:
  // `communicator` is the number by which the section names the communicator.
  void Take(uint32_t communicator, const IssuedCall& issued);
  // Returns the hash of the calls that were taken, and forgets them.
  uint64_t Finish();

 private:
  struct Operation {
    uint64_t call_number = 0;
    uint64_t bytes = 0;
    int32_t root_or_peer = 0;
    uint16_t index_in_group = 0;
    Collective collective = Collective::kAllReduce;
    DataType data_type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
  };
  std::map<uint32_t, size_t> order_;  // communicator -> place of its first call
  std::vector<std::vector<Operation>> by_communicator_;
};

}  // namespace dynamiccl
