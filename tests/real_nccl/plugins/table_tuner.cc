// SPDX-License-Identifier: Apache-2.0
// A tuner plugin (version 5) that changes nothing and writes down what NCCL asks, one line a decision:
//   <function> <bytes> <algorithms> <protocols> <cost> <cost> ...   costs in microseconds, algorithm by
//   algorithm
// into TABLE_TUNER_FILE. Only the first communicator object of the process writes, since all ranks are asked
// the same.
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "src/nccl_abi/tuner_v5.h"

namespace {

ncclResult_t Init(void** context, uint64_t, size_t, size_t, ncclDebugLogger_t, ncclNvlDomainInfo_v5_t*,
                  ncclTunerConstants_v5_t*) {
  static std::atomic<bool> taken{false};
  const char* path = std::getenv("TABLE_TUNER_FILE");
  *context = path == nullptr || taken.exchange(true) ? nullptr : std::fopen(path, "w");
  return ncclSuccess;
}

ncclResult_t GetCollInfo(void* context, ncclFunc_t function, size_t bytes, int, float** table, int algorithms,
                         int protocols, int, int*) {
  auto* file = static_cast<FILE*>(context);
  if (file == nullptr) return ncclSuccess;
  std::fprintf(file, "%d %zu %d %d", static_cast<int>(function), bytes, algorithms, protocols);
  const auto* costs = reinterpret_cast<const float*>(table);  // NCCL's type lies: it is one block of floats
  for (int cell = 0; cell < algorithms * protocols; ++cell)
    std::fprintf(file, " %.9g", static_cast<double>(costs[cell]));
  std::fprintf(file, "\n");
  return ncclSuccess;
}

ncclResult_t Finalize(void* context) {
  if (context != nullptr) std::fclose(static_cast<FILE*>(context));
  return ncclSuccess;
}

}  // namespace

extern "C" __attribute__((visibility("default")))
const ncclTuner_v5_t ncclTunerPlugin_v5 = {"Table", Init, GetCollInfo, Finalize};
