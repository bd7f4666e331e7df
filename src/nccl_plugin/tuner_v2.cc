// SPDX-License-Identifier: Apache-2.0
// Adapter for tuner version 2, which names one (algorithm, protocol) pair. The adapter writes cost 0 for that
// pair into the cost table of the newest form, so that NCCL picks the pair. A pair that the table marks as
// impossible is ignored.
#include "src/nccl_abi/tuner_v2.h"

#include "src/nccl_plugin/tuner_interface.h"

namespace dynamiccl {
namespace {

using Table = float (*)[NCCL_NUM_PROTOCOLS];

const ncclTuner_v2_t* found = nullptr;

ncclResult_t Init(void** context, uint64_t, size_t n_ranks, size_t n_nodes, ncclDebugLogger_t logger,
                  ncclNvlDomainInfo_v5_t*, ncclTunerConstants_v7_t*) {
  return found->init(n_ranks, n_nodes, logger, context);
}

// A version 2 tuner is told whether the communicator has CollNet and NVLS. The cost table shows both, and
// NCCL's own adapter reads them in the same way.
int HasCollnet(Table table) {
  return table[NCCL_ALGO_COLLNET_CHAIN][NCCL_PROTO_SIMPLE] != NCCL_ALGO_PROTO_IGNORE;
}
int HasNvls(Table table) {
  return table[NCCL_ALGO_NVLS][NCCL_PROTO_SIMPLE] != NCCL_ALGO_PROTO_IGNORE ||
         table[NCCL_ALGO_NVLS_TREE][NCCL_PROTO_SIMPLE] != NCCL_ALGO_PROTO_IGNORE;
}

ncclResult_t GetCollInfo(void* context, ncclFunc_t function, size_t bytes, int n_pipe_ops, float** costs,
                         int n_algorithms, int n_protocols, int, int* channels) {
  auto table = reinterpret_cast<Table>(costs);
  int algorithm = NCCL_ALGO_UNDEF;
  int protocol = NCCL_PROTO_UNDEF;
  const ncclResult_t result = found->getCollInfo(context, function, bytes, HasCollnet(table), HasNvls(table),
                                                 n_pipe_ops, &algorithm, &protocol, channels);
  if (result != ncclSuccess) return result;
  const bool named = algorithm >= 0 && algorithm < n_algorithms && protocol >= 0 && protocol < n_protocols;
  if (named && table[algorithm][protocol] != NCCL_ALGO_PROTO_IGNORE) table[algorithm][protocol] = 0;
  return ncclSuccess;
}

}  // namespace

bool FindTunerV2(const DynamicLibrary& library, TunerInterface& out) {
  found = static_cast<const ncclTuner_v2_t*>(library.Symbol("ncclTunerPlugin_v2"));
  if (found == nullptr) return false;
  out = {{.name = found->name,
          .init = Init,
          .getCollInfo = GetCollInfo,
          .finalize = found->destroy,
          .getChunkSize = nullptr},
         2};
  return true;
}

}  // namespace dynamiccl
