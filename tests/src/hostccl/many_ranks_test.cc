// SPDX-License-Identifier: Apache-2.0
// Runs 64 ranks as threads and 16 as processes. The tests print the memory and the descriptors per rank and
// record them as test properties.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "src/hostccl/communicator_init.h"
#include "tests/src/hostccl/three_collectives.h"
#include "tests/support/rank_processes.h"
#include "tests/support/spawn_threads.h"

namespace dynamiccl::hostccl {
namespace {

using dynamiccl::testing::RankEnd;
using dynamiccl::testing::RunRanks;
using dynamiccl::testing::SpawnThreads;
using dynamiccl::testing::ThreeCollectivesAreRight;

constexpr int kThreads = 64;

// Returns the value in kB of one line of /proc/self/status.
int64_t StatusKb(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1));
  }
  return 0;
}

int64_t OpenDescriptors() {
  const auto folder = std::filesystem::directory_iterator("/proc/self/fd");
  return std::distance(begin(folder), end(folder));
}

void Report(const char* what, int64_t value) {
  ::testing::Test::RecordProperty(what, static_cast<int>(value));
  std::printf("%s %lld\n", what, static_cast<long long>(value));
}

// This test forks, so it runs first, before the process has other threads.
TEST(ManyRanks, SixteenProcesses) {
  for (const RankEnd& end :
       RunRanks({.program = DYNAMICCL_RANDOM_RANK_PROGRAM, .n_ranks = 16, .behaviour = "sums"})) {
    EXPECT_TRUE(end.exited_with(0)) << end.status;
  }
}

TEST(ManyRanks, SixtyFourThreads) {
  const auto id = MakeUniqueId();
  ASSERT_TRUE(id.has_value());
  const int64_t rss_before = StatusKb("VmRSS");
  const int64_t virtual_before = StatusKb("VmSize");
  const int64_t descriptors_before = OpenDescriptors();
  std::atomic<int> right{0};
  SpawnThreads(kThreads, [&](int rank) {
    const auto made = InitCommunicator({.n_ranks = kThreads, .rank = rank, .id = *id});
    ASSERT_TRUE(made.has_value()) << made.error().message;
    for (const Protocol protocol : {Protocol::kSimple, Protocol::kLL}) {
      if (ThreeCollectivesAreRight(*made, 1000, {Algorithm::kRing, protocol, 2})) ++right;
    }
    if (rank == 0) {
      Report("resident_kb_per_rank", (StatusKb("VmRSS") - rss_before) / kThreads);
      Report("virtual_mb_per_rank", (StatusKb("VmSize") - virtual_before) / 1024 / kThreads);
      Report("descriptors_per_rank", (OpenDescriptors() - descriptors_before) / kThreads);
      // Ranks in one process need no sockets between each other.
      EXPECT_LT((OpenDescriptors() - descriptors_before) / kThreads, 8);
    }
  });
  EXPECT_EQ(right, 2 * kThreads);
}

}  // namespace
}  // namespace dynamiccl::hostccl
