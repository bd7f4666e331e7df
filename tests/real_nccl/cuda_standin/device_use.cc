// SPDX-License-Identifier: Apache-2.0
#include "tests/real_nccl/cuda_standin/device_use.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace cuda_standin {
namespace {

struct Use {
  int64_t now = 0;
  int64_t most = 0;
};

struct UseTable {
  std::mutex mutex;
  std::map<std::pair<int, int>, Use> of_gpu;  // keyed by node and device
};

// The table is never destroyed, because NCCL's threads may free memory while the process exits.
UseTable& Table() {
  static auto* table = new UseTable;
  return *table;
}

}  // namespace

void CountDeviceMemory(const Place& gpu, int64_t bytes) {
  const std::lock_guard lock(Table().mutex);
  Use& use = Table().of_gpu[{gpu.node, gpu.device}];
  use.now += bytes;
  use.most = std::max(use.most, use.now);
}

uint64_t MostDeviceMemory(const Place& gpu) {
  const std::lock_guard lock(Table().mutex);
  return static_cast<uint64_t>(Table().of_gpu[{gpu.node, gpu.device}].most);
}

}  // namespace cuda_standin
