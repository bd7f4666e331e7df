// SPDX-License-Identifier: Apache-2.0
// Runs a function on several threads at once.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace dynamiccl::testing {

// Runs fn(rank) on n threads at once and joins them.
inline void SpawnThreads(int n, const std::function<void(int)>& fn) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < n; ++rank) threads.emplace_back(fn, rank);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace dynamiccl::testing
