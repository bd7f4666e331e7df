// SPDX-License-Identifier: Apache-2.0
// Runs ranks as forked processes of the test, which must have no threads when it forks.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

#include "src/hostccl/communicator_init.h"

namespace dynamiccl::testing {

// Rank 0 creates the id and sends it to the others through a pipe.
inline Result<ncclUniqueId> IdByPipe(int rank, int n, const int (&ends)[2]) {
  ncclUniqueId id{};
  if (rank != 0) {
    if (::read(ends[0], &id, sizeof(id)) == sizeof(id)) return id;
    return MakeError(ErrorKind::kPeerFailed, "rank 0 made no id");
  }
  DYNAMICCL_TRY(id, hostccl::MakeUniqueId());
  for (int other = 1; other < n; ++other) {
    if (::write(ends[1], &id, sizeof(id)) != sizeof(id)) return MakeError(ErrorKind::kInternal, "pipe");
  }
  return id;
}

using RankBody = std::function<void(const std::shared_ptr<hostccl::Communicator>&)>;

inline void RunRank(int rank, int n, const int (&ends)[2], const RankBody& body) {
  const auto id = IdByPipe(rank, n, ends);
  ASSERT_TRUE(id.has_value()) << id.error().message;
  const auto made = hostccl::InitCommunicator({.n_ranks = n, .rank = rank, .id = *id});
  ASSERT_TRUE(made.has_value()) << made.error().message;
  body(*made);
}

// Runs body(communicator) in n processes and returns their wait statuses by rank.
inline std::vector<int> RunRankProcesses(int n, const RankBody& body) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe(ends), 0);
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (int rank = 0; rank < n; ++rank) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    RunRank(rank, n, ends, body);
    std::fflush(nullptr);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  std::vector<int> statuses(static_cast<size_t>(n));
  for (size_t rank = 0; rank < statuses.size(); ++rank) ::waitpid(children[rank], &statuses[rank], 0);
  ::close(ends[0]);
  ::close(ends[1]);
  return statuses;
}

// Does the same, and requires that every process ends without a failed expectation.
inline void WithRankProcesses(int n, const RankBody& body) {
  for (const int status : RunRankProcesses(n, body)) {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }
}

}  // namespace dynamiccl::testing
