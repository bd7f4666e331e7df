// SPDX-License-Identifier: Apache-2.0
// A tuner plugin (versions 3 to 5, for NCCL 2.22 and later) that changes nothing. It writes what NCCL asks
// into TABLE_TUNER_FILE, one line for each decision:
//   <function> <bytes> <pipe ops> <registered> <algorithms> <protocols> <cost> <cost> ...
// Costs are in microseconds, and each algorithm has one cost for each protocol. From version 5 on, the first
// line has the constants of NCCL's model, in the order of the structure's members:
//   constants <number> <number> ...
// NCCL asks all ranks the same, so only the first communicator object of the process writes.
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "src/nccl_abi/tuner_v3.h"
#include "src/nccl_abi/tuner_v4.h"
#include "src/nccl_abi/tuner_v5.h"

namespace {

FILE* OpenFile() {
  static std::atomic<bool> taken{false};
  const char* path = std::getenv("TABLE_TUNER_FILE");
  return path == nullptr || taken.exchange(true) ? nullptr : std::fopen(path, "w");
}

ncclResult_t InitV5(void** context, uint64_t, size_t, size_t, ncclDebugLogger_t, ncclNvlDomainInfo_v5_t*,
                    ncclTunerConstants_v5_t* constants) {
  FILE* file = OpenFile();
  *context = file;
  if (file == nullptr || constants == nullptr) return ncclSuccess;
  std::fprintf(file, "constants");
  const auto* numbers = reinterpret_cast<const double*>(constants);
  for (size_t i = 0; i < sizeof(*constants) / sizeof(double); ++i) std::fprintf(file, " %.9g", numbers[i]);
  std::fprintf(file, "\n");
  return ncclSuccess;
}

ncclResult_t InitV3(size_t, size_t, ncclDebugLogger_t, void** context) {
  *context = OpenFile();
  return ncclSuccess;
}

ncclResult_t GetCollInfo(void* context, ncclFunc_t function, size_t bytes, int pipe_ops, float** table,
                         int algorithms, int protocols, int registered, int*) {
  auto* file = static_cast<FILE*>(context);
  if (file == nullptr) return ncclSuccess;
  std::fprintf(file, "%d %zu %d %d %d %d", static_cast<int>(function), bytes, pipe_ops, registered,
               algorithms, protocols);
  // In spite of its type, the table is one block of floats.
  const auto* costs = reinterpret_cast<const float*>(table);
  for (int cell = 0; cell < algorithms * protocols; ++cell)
    std::fprintf(file, " %.9g", static_cast<double>(costs[cell]));
  std::fprintf(file, "\n");
  return ncclSuccess;
}

ncclResult_t GetCollInfoV3(void* context, ncclFunc_t function, size_t bytes, int pipe_ops, float** table,
                           int algorithms, int protocols, int* channels) {
  return GetCollInfo(context, function, bytes, pipe_ops, table, algorithms, protocols, 0, channels);
}

ncclResult_t Finalize(void* context) {
  if (context != nullptr) std::fclose(static_cast<FILE*>(context));
  return ncclSuccess;
}

}  // namespace

extern "C" __attribute__((visibility("default")))
const ncclTuner_v3_t ncclTunerPlugin_v3 = {"Table", InitV3, GetCollInfoV3, Finalize};
extern "C" __attribute__((visibility("default")))
const ncclTuner_v4_t ncclTunerPlugin_v4 = {"Table", InitV3, GetCollInfo, Finalize};
extern "C" __attribute__((visibility("default")))
const ncclTuner_v5_t ncclTunerPlugin_v5 = {"Table", InitV5, GetCollInfo, Finalize};
