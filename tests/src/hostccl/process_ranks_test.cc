// SPDX-License-Identifier: Apache-2.0
// Ranks as processes. They share memory by handing over descriptors and leave nothing in /dev/shm. A killed
// rank does not make the others hang.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace dynamiccl {
namespace {

std::set<std::string> SharedMemoryNames() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    names.insert(entry.path().filename());
  return names;
}

pid_t Start(int rank, int n_ranks, const int (&pipe_ends)[2], const char* behaviour) {
  const std::vector<std::string> words = {DYNAMICCL_RANK_PROGRAM,       std::to_string(rank),
                                          std::to_string(n_ranks),      std::to_string(pipe_ends[0]),
                                          std::to_string(pipe_ends[1]), behaviour};
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  return child;
}

// Runs the ranks and returns their wait statuses by rank.
std::vector<int> RunRanks(int n_ranks, const char* behaviour) {
  int pipe_ends[2];
  EXPECT_EQ(::pipe(pipe_ends), 0);
  std::vector<pid_t> children;
  for (int rank = 0; rank < n_ranks; ++rank) children.push_back(Start(rank, n_ranks, pipe_ends, behaviour));
  std::vector<int> statuses;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    statuses.push_back(status);
  }
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  return statuses;
}

TEST(ProcessRanks, SumOverProcesses) {
  for (const int status : RunRanks(4, "sum"))
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ProcessRanks, TwoCommunicatorsInOppositeOrderDoNotDeadlock) {
  for (const int status : RunRanks(2, "opposite"))
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ProcessRanks, AKilledRankGivesTheOthersARemoteError) {
  const auto before = SharedMemoryNames();
  const std::vector<int> statuses = RunRanks(3, "die");
  EXPECT_TRUE(WIFEXITED(statuses[0]) && WEXITSTATUS(statuses[0]) == 0) << statuses[0];
  EXPECT_TRUE(WIFSIGNALED(statuses[1]) && WTERMSIG(statuses[1]) == SIGKILL) << statuses[1];
  EXPECT_TRUE(WIFEXITED(statuses[2]) && WEXITSTATUS(statuses[2]) == 0) << statuses[2];
  EXPECT_EQ(SharedMemoryNames(), before);
}

// The forked child has copies of the rank's sockets, as a worker of a data loader has.
TEST(ProcessRanks, AKilledRankIsNoticedAlthoughAForkedChildOfItLives) {
  for (const char* behaviour : {"orphan", "orphan_hosts"}) {
    const std::vector<int> statuses = RunRanks(3, behaviour);
    for (const size_t rank : {0, 2}) {
      EXPECT_TRUE(WIFEXITED(statuses[rank]) && WEXITSTATUS(statuses[rank]) == 0)
          << behaviour << ", rank " << rank << ": " << statuses[rank];
    }
    EXPECT_TRUE(WIFSIGNALED(statuses[1]) && WTERMSIG(statuses[1]) == SIGKILL) << statuses[1];
  }
}

TEST(ProcessRanks, SurvivorsShrinkAndGoOn) {
  const std::vector<int> statuses = RunRanks(4, "shrink");
  for (const size_t rank : {0, 2, 3}) {
    EXPECT_TRUE(WIFEXITED(statuses[rank]) && WEXITSTATUS(statuses[rank]) == 0)
        << rank << ": " << statuses[rank];
  }
  EXPECT_TRUE(WIFSIGNALED(statuses[1]) && WTERMSIG(statuses[1]) == SIGKILL) << statuses[1];
}

TEST(ProcessRanks, APluginsOwnResultIsKept) {
  for (const int status : RunRanks(3, "plugin")) {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

TEST(ProcessRanks, SettingsThatDifferAreRefusedOnAllRanks) {
  for (const int status : RunRanks(3, "settings")) {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

}  // namespace
}  // namespace dynamiccl
