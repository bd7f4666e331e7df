// SPDX-License-Identifier: Apache-2.0
// An NCCL that does nothing, for measuring what an interposer and a tuner add to a call: it takes calls, asks
// the tuner plugin of the process as NCCL would, and returns.
#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "src/cost_model/cost_model.h"
#include "src/cost_model/tuner_constants.h"
#include "src/nccl_abi/tuner_v6.h"

#define DYNAMICCL_EXPORT __attribute__((visibility("default")))

struct ncclComm {
  const ncclTuner_v6_t* tuner = nullptr;
  void* context = nullptr;
};

namespace {

// Ring and Tree over LL and Simple, as on a machine without NVLink.
constexpr std::array<float, 21> kTable = {20, -1, 40, 25, -1, 30, -1, -1, -1, -1, -1,
                                          -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

void LoadTuner(ncclComm& comm) {
  if (std::getenv("NCCL_TUNER_PLUGIN") == nullptr) return;
  comm.tuner = static_cast<const ncclTuner_v6_t*>(::dlsym(RTLD_DEFAULT, "ncclTunerPlugin_v6"));
  if (comm.tuner == nullptr) return;
  dynamiccl::CostModelInput model;
  model.constants = dynamiccl::NcclHopperConstants(1);
  model.fabric = {1, 1, 8, {1, 10}, {5, 5}};
  ncclTunerConstants_v5_t constants = dynamiccl::ToTunerConstants(model);
  ncclNvlDomainInfo_v5_t domains{1, 1, 1};
  comm.tuner->init(&comm.context, 1, 1, 1, nullptr, &domains, &constants);
}

ncclResult_t Ask(ncclComm& comm, size_t bytes) {
  if (comm.tuner == nullptr) return ncclSuccess;
  std::array<float, kTable.size()> table = kTable;
  int channels = 0;
  return comm.tuner->getCollInfo(comm.context, ncclFuncAllReduce, bytes, 1,
                                 reinterpret_cast<float**>(table.data()), 7, 3, 0, &channels);
}

}  // namespace

extern "C" {

DYNAMICCL_EXPORT ncclResult_t ncclGetVersion(int* version) {
  *version = DYNAMICCL_NCCL_API_VERSION;
  return ncclSuccess;
}

DYNAMICCL_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 0, sizeof(*id));
  return ncclSuccess;
}

DYNAMICCL_EXPORT ncclResult_t ncclCommInitRank(ncclComm_t* comm, int, ncclUniqueId, int) {
  *comm = new ncclComm();
  LoadTuner(**comm);
  return ncclSuccess;
}

DYNAMICCL_EXPORT ncclResult_t ncclAllReduce(const void*, void*, size_t count, ncclDataType_t, ncclRedOp_t,
                                            ncclComm_t comm, cudaStream_t) {
  return Ask(*comm, count * sizeof(float));
}

DYNAMICCL_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm->tuner != nullptr) comm->tuner->finalize(comm->context);
  delete comm;
  return ncclSuccess;
}

}  // extern "C"
