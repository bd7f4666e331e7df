// SPDX-License-Identifier: Apache-2.0
// The state of the plugin is global, since the sweep has no access to an object that NCCL creates.
#include "tools/bench/sweep_tuner.h"

#include <cstring>

#define DYNAMICCL_EXPORT __attribute__((visibility("default")))

namespace {

// The config to force. Only the thread that issues calls writes it, and NCCL asks the plugin on the same
// thread.
struct Forced {
  int algorithm = -1;
  int protocol = -1;
  int channels = 0;
};
Forced g_forced;
dynamicclSweepView_t g_view{};

ncclResult_t Init(void** ctx, uint64_t, size_t n_ranks, size_t n_nodes, ncclDebugLogger_t,
                  ncclNvlDomainInfo_v5_t*, ncclTunerConstants_v5_t* constants) {
  *ctx = nullptr;
  g_view.n_ranks = static_cast<int>(n_ranks);
  g_view.n_nodes = static_cast<int>(n_nodes);
  if (constants != nullptr) g_view.constants = *constants;
  return ncclSuccess;
}

ncclResult_t GetCollInfo(void*, ncclFunc_t, size_t, int, float** cost_table, int n_algorithms,
                         int n_protocols, int, int* channels) {
  // NCCL's interface declares float** but passes float[n_algorithms][n_protocols].
  auto* table = reinterpret_cast<float*>(cost_table);
  if (n_algorithms == NCCL_NUM_ALGORITHMS && n_protocols == NCCL_NUM_PROTOCOLS) {
    std::memcpy(g_view.table, table, sizeof(g_view.table));
  }
  ++g_view.questions;
  if (g_forced.algorithm < 0 || g_forced.algorithm >= n_algorithms || g_forced.protocol >= n_protocols) {
    return ncclSuccess;
  }
  float& entry = table[g_forced.algorithm * n_protocols + g_forced.protocol];
  if (entry < 0) return ncclSuccess;
  entry = 0;
  if (g_forced.channels > 0) *channels = g_forced.channels;
  ++g_view.forced;
  return ncclSuccess;
}

ncclResult_t Finalize(void*) {
  return ncclSuccess;
}

}  // namespace

extern "C" {

DYNAMICCL_EXPORT extern const ncclTuner_v5_t ncclTunerPlugin_v5;
const ncclTuner_v5_t ncclTunerPlugin_v5 = {"dynamiccl sweep", Init, GetCollInfo, Finalize};

DYNAMICCL_EXPORT void dynamicclSweepForce(int algorithm, int protocol, int channels) {
  g_forced = {algorithm, protocol, channels};
}

DYNAMICCL_EXPORT void dynamicclSweepView(dynamicclSweepView_t* view) {
  *view = g_view;
}
}
