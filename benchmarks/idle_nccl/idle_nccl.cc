// SPDX-License-Identifier: Apache-2.0
// An NCCL whose calls only ask the process's tuner plugin, as NCCL does, and return.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "benchmarks/idle_nccl/idle_nccl.h"
#include "src/cost_model/cost_model.h"
#include "src/cost_model/tuner_constants.h"
#include "src/nccl_abi/tuner_v6.h"

#define DYNAMICCL_EXPORT __attribute__((visibility("default")))

struct ncclComm {
  const ncclTuner_v6_t* tuner = nullptr;
  void* context = nullptr;
};

namespace {

// Costs in microseconds by algorithm and protocol: Ring and Tree with LL and Simple, as on a machine without
// NVLink.
constexpr std::array<float, 21> kTable = {20, -1, 40, 25, -1, 30, -1, -1, -1, -1, -1,
                                          -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

bool g_timed = false;
void (*g_hook)() = nullptr;
IdleQuestions g_questions;

void LoadTuner(ncclComm& comm, int n_ranks) {
  if (std::getenv("NCCL_TUNER_PLUGIN") == nullptr) return;
  comm.tuner = static_cast<const ncclTuner_v6_t*>(::dlsym(RTLD_DEFAULT, "ncclTunerPlugin_v6"));
  if (comm.tuner == nullptr) return;
  dynamiccl::CostModelInput model;
  model.constants = dynamiccl::NcclHopperConstants(1);
  model.fabric = {1, 1, 8, {1, 10}, {5, 5}};
  ncclTunerConstants_v5_t constants = dynamiccl::ToTunerConstants(model);
  ncclNvlDomainInfo_v5_t domains{1, 1, 1};
  comm.tuner->init(&comm.context, 1, static_cast<size_t>(n_ranks), 1, nullptr, &domains, &constants);
}

using Table = std::array<float, kTable.size()>;

ncclResult_t Ask(ncclComm& comm, size_t bytes, Table& table) {
  if (comm.tuner == nullptr) return ncclSuccess;
  int channels = 0;
  return comm.tuner->getCollInfo(comm.context, ncclFuncAllReduce, bytes, 1,
                                 reinterpret_cast<float**>(table.data()), 7, 3, 0, &channels);
}

// Asks the tuner. Records how long this takes and whether the tuner made a choice.
ncclResult_t AskTimed(ncclComm& comm, size_t bytes, Table& table) {
  const auto start = std::chrono::steady_clock::now();
  const ncclResult_t result = Ask(comm, bytes, table);
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
  g_questions.last_ns = time.count();
  g_questions.answered += std::count(table.begin(), table.end(), 0.0f) > 0 ? 1 : 0;
  return result;
}

}  // namespace

extern "C" {

DYNAMICCL_EXPORT ncclResult_t ncclGetVersion(int* version) {
  *version = DYNAMICCL_NCCL_API_VERSION;
  return ncclSuccess;
}

DYNAMICCL_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<uint64_t> made{0};
  const uint64_t number = ++made;
  std::memset(id, 0, sizeof(*id));
  std::memcpy(id->internal, &number, sizeof(number));
  return ncclSuccess;
}

DYNAMICCL_EXPORT ncclResult_t ncclCommInitRank(ncclComm_t* comm, int n_ranks, ncclUniqueId, int) {
  *comm = new ncclComm();
  LoadTuner(**comm, n_ranks);
  return ncclSuccess;
}

DYNAMICCL_EXPORT ncclResult_t ncclAllReduce(const void*, void*, size_t count, ncclDataType_t, ncclRedOp_t,
                                            ncclComm_t comm, cudaStream_t) {
  if (g_hook != nullptr) g_hook();
  Table table = kTable;
  return g_timed ? AskTimed(*comm, count * sizeof(float), table) : Ask(*comm, count * sizeof(float), table);
}

DYNAMICCL_EXPORT ncclResult_t ncclGroupStart() {
  return ncclSuccess;
}
DYNAMICCL_EXPORT ncclResult_t ncclGroupEnd() {
  return ncclSuccess;
}

DYNAMICCL_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm->tuner != nullptr) comm->tuner->finalize(comm->context);
  delete comm;
  return ncclSuccess;
}

DYNAMICCL_EXPORT void idleNcclTimeQuestions(bool timed) {
  g_timed = timed;
}

DYNAMICCL_EXPORT void idleNcclRunDuringCalls(void (*hook)()) {
  g_hook = hook;
}

DYNAMICCL_EXPORT IdleQuestions idleNcclQuestions() {
  return g_questions;
}

}  // extern "C"
