// SPDX-License-Identifier: Apache-2.0
// All ranks of a communicator in one process.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "src/hostccl/communicator_init.h"
#include "tests/support/spawn_threads.h"

namespace dynamiccl::testing {

// By rank; fewer when init failed, which fails the test.
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
