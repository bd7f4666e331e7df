// SPDX-License-Identifier: Apache-2.0
// AllReduce with NCCL 2.31 and later, where a call may have its own choice (ncclCollConfig_t).
#include "rank_program.h"

namespace first_hour {

ncclResult_t AllReduce(const AllReduceCall& call, const std::string& selection) {
  if (selection.empty()) {
    return ncclAllReduce(call.send, call.receive, call.count, ncclFloat, ncclSum, call.communicator,
                         call.stream);
  }
  ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
  config.algSelection = selection.c_str();
  return ncclAllReduceConfig(call.send, call.receive, call.count, ncclFloat, ncclSum, call.communicator,
                             call.stream, &config);
}

}  // namespace first_hour
