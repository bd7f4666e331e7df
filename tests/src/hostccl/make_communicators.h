// SPDX-License-Identifier: Apache-2.0
// Creates all ranks of a communicator in one process.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "src/hostccl/communicator_init.h"
#include "tests/support/spawn_threads.h"

namespace dynamiccl::testing {

// Returns the communicators by rank. If the init of a rank fails, the test fails and that entry is null.
inline std::vector<std::shared_ptr<hostccl::Communicator>> MakeCommunicators(int n) {
  std::vector<std::shared_ptr<hostccl::Communicator>> communicators(static_cast<size_t>(n));
  const auto id = hostccl::MakeUniqueId();
  EXPECT_TRUE(id.has_value());
  SpawnThreads(n, [&](int rank) {
    auto made = hostccl::InitCommunicator({.n_ranks = n, .rank = rank, .id = *id});
    ASSERT_TRUE(made.has_value()) << made.error().message;
    communicators[static_cast<size_t>(rank)] = std::move(*made);
  });
  return communicators;
}

}  // namespace dynamiccl::testing
