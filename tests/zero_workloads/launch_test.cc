// SPDX-License-Identifier: Apache-2.0
// Tests the parts of the trainer that do not use LibTorch: rank, rendezvous, text, partition, life cycle and
// schedule.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <future>
#include <numeric>

#include "src/base/reserved_port.h"
#include "tests/zero_workloads/rank_processes.h"
#include "zero_workloads/data/text_dataset.h"
#include "zero_workloads/optimizer/learning_rate_schedule.h"
#include "zero_workloads/parallel/partition.h"
#include "zero_workloads/parallel/rank_environment.h"
#include "zero_workloads/parallel/rendezvous.h"
#include "zero_workloads/zero/parameter_state.h"

namespace dynamiccl::zero {
namespace {

using ::testing::HasSubstr;

// Sets variables for one test, and unsets them afterwards.
class Variables {
 public:
  explicit Variables(std::map<std::string, std::string> values) : values_(std::move(values)) {
    for (const auto& [name, value] : values_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Variables() {
    for (const auto& [name, value] : values_) unsetenv(name.c_str());
  }

 private:
  std::map<std::string, std::string> values_;
};

TEST(RankEnvironment, WithoutALauncherIsOneRank) {
  const auto environment = ReadRankEnvironment();
  ASSERT_TRUE(environment);
  EXPECT_EQ(environment->world, 1);
  EXPECT_EQ(environment->launcher, "none");
}

TEST(RankEnvironment, ReadsEveryLauncher) {
  struct Case {
    std::string launcher, rank, world, local_rank;
  };
  for (const auto& [launcher, rank, world, local_rank] :
       {Case{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
        Case{"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
        Case{"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
        Case{"pmi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"}}) {
    const Variables variables(
        {{rank, "5"}, {world, "8"}, {local_rank, "1"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "1234"}});
    const auto environment = ReadRankEnvironment();
    ASSERT_TRUE(environment) << launcher;
    EXPECT_EQ(environment->launcher, launcher);
    EXPECT_EQ(environment->rank, 5);
    EXPECT_EQ(environment->world, 8);
    EXPECT_EQ(environment->local_rank, 1);
    EXPECT_EQ(environment->address, "node0");
    EXPECT_EQ(environment->port, 1234);
  }
}

TEST(RankEnvironment, LeavesTorchrunsOwnPortAlone) {
  const Variables variables({{"RANK", "0"},
                             {"WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "node0"},
                             {"MASTER_PORT", "1234"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_EQ(ReadRankEnvironment()->port, 1235);
}

// Returns a unique id whose bytes name the rank that made it.
ncclUniqueId IdOf(int rank) {
  ncclUniqueId id;
  std::memset(id.internal, 'a' + rank, sizeof(id.internal));
  return id;
}

struct Member {
  int rank = 0;
  int world = 0;
  uint64_t fingerprint = 1;
};

// Lets all members join at the same time. Each call of this function uses another port.
std::vector<Result<ncclUniqueId>> Join(const std::vector<Member>& members,
                                       std::chrono::milliseconds timeout) {
  const ReservedPort port = ReservedPort::Reserve().value();
  std::vector<std::future<Result<ncclUniqueId>>> joining;
  for (const Member& member : members) {
    joining.push_back(std::async(std::launch::async, [member, timeout, &port] {
      const RankEnvironment environment{member.rank, member.world, member.rank,
                                        "test",      "127.0.0.1",  port.number()};
      return ExchangeUniqueId(environment, IdOf(member.rank), {timeout, member.fingerprint});
    }));
  }
  std::vector<Result<ncclUniqueId>> results;
  for (auto& member : joining) results.push_back(member.get());
  return results;
}

void ExpectAllFail(const std::vector<Result<ncclUniqueId>>& results, ErrorKind kind,
                   const std::string& message) {
  for (const auto& result : results) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, kind);
    EXPECT_THAT(result.error().message, HasSubstr(message));
  }
}

TEST(Rendezvous, EveryRankGetsTheIdOfRankZero) {
  for (const auto& result : Join({{3, 4}, {1, 4}, {0, 4}, {2, 4}}, std::chrono::seconds(20))) {
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->internal[127], 'a');
  }
}

TEST(Rendezvous, NamesTheRanksThatDoNotCome) {
  ExpectAllFail(Join({{0, 4}, {2, 4}}, std::chrono::milliseconds(300)), ErrorKind::kTimeout,
                "rank(s) 1, 3 of 4 did not join");
}

TEST(Rendezvous, RefusesRanksOfAnotherRun) {
  const auto timeout = std::chrono::seconds(20);
  ExpectAllFail(Join({{0, 2}, {1, 3}}, timeout), ErrorKind::kInvalidArgument,
                "rank 1 was started with a world size of 3, rank 0 with 2");
  ExpectAllFail(Join({{0, 2}, {1, 2, 77}}, timeout), ErrorKind::kInvalidArgument,
                "other options or another text");
  ExpectAllFail(Join({{0, 3}, {1, 3}, {1, 3}}, timeout), ErrorKind::kInvalidArgument, "two processes");
}

TEST(Rendezvous, SaysThatThePortIsTaken) {
  const UniqueFd taker(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(taker.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(taker.get(), 1), 0);
  ASSERT_EQ(::getsockname(taker.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const RankEnvironment rank{0, 2, 0, "test", "127.0.0.1", ntohs(address.sin_port)};
  const auto id = ExchangeUniqueId(rank, IdOf(0), {std::chrono::seconds(20), 1});
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().kind, ErrorKind::kUnavailable);
  EXPECT_THAT(id.error().message, HasSubstr("rank 0 cannot listen at 127.0.0.1:" + std::to_string(rank.port) +
                                            ": Address already in use"));
  EXPECT_THAT(id.error().hint, HasSubstr("set MASTER_PORT to a free port"));
}

TEST(Rendezvous, SaysWhenRankZeroIsNotThere) {
  ExpectAllFail(Join({{1, 2}}, std::chrono::milliseconds(100)), ErrorKind::kTimeout,
                "could not reach rank 0");
}

TEST(TextDataset, TakesAFoldersTextsWithoutTheHeldOutOne) {
  const TemporaryFolder folder;
  std::ofstream(folder / "b.txt") << "bb";
  std::ofstream(folder / "a.txt") << "aaa";
  std::ofstream(folder / "held.txt") << "hold";
  std::ofstream(folder / "notes.md") << "no text";
  const auto text = LoadText({{(folder / "").string()}, (folder / "held.txt").string()});
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(std::string(text->train.begin(), text->train.end()), "aaabb");
  EXPECT_EQ(std::string(text->held_out.begin(), text->held_out.end()), "hold");
}

TEST(TextDataset, AFolderInTheFilesPlaceIsNamed) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "deep.txt");
  std::ofstream(folder / "a.txt") << "aaa";
  const std::string deep = (folder / "deep.txt").string();
  for (const TextSource& source :
       {TextSource{{(folder / "").string()}, ""}, TextSource{{(folder / "a.txt").string()}, deep}}) {
    const auto text = LoadText(source);
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().kind, ErrorKind::kNotFound);
    EXPECT_THAT(text.error().message, HasSubstr(deep + ": is a folder"));
  }
}

TEST(TextDataset, HoldsTheEndOutByDefault) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.txt") << std::string(95, 'a') << "bcdef";
  const auto text = LoadText({{(folder / "a.txt").string()}, ""});
  ASSERT_TRUE(text);
  EXPECT_EQ(text->train.size(), 95u);
  EXPECT_EQ(std::string(text->held_out.begin(), text->held_out.end()), "bcdef");
}

TEST(TextDataset, EntropyOfEqualFrequenciesIsTheirLogarithm) {
  std::vector<uint8_t> text(64);
  std::iota(text.begin(), text.end(), uint8_t{0});
  EXPECT_NEAR(UnigramEntropy(text), 6.0, 1e-12);
}

TEST(Partition, ShardsCoverEveryUnitAndTheArenaHasNoGaps) {
  const std::vector<int64_t> elements = {1000, 1, 128 * 7, 50000};
  for (const int world : {1, 2, 3, 7}) {
    const Partition partition(elements, world);
    int64_t arena = 0;
    for (int unit = partition.units() - 1; unit >= 0; --unit) {
      EXPECT_EQ(partition.unit(unit).arena_offset, arena);
      EXPECT_EQ(partition.unit(unit).shard_elements % kShardAlignment, 0);
      EXPECT_GE(partition.flat_elements(unit), elements[static_cast<size_t>(unit)]);
      EXPECT_LT(partition.flat_elements(unit), elements[static_cast<size_t>(unit)] + world * kShardAlignment);
      arena += partition.unit(unit).shard_elements;
    }
    EXPECT_EQ(partition.arena_elements(), arena);
  }
}

TEST(ParameterLife, RefusesWhatTheTableDoesNotHave) {
  ParameterLife life;
  EXPECT_THROW(life.MoveTo(ParameterState::kInUse), std::logic_error);
  for (const ParameterState next :
       {ParameterState::kGathering, ParameterState::kInUse, ParameterState::kPartitioned,
        ParameterState::kGathering, ParameterState::kInUse, ParameterState::kGradientReady,
        ParameterState::kPartitioned, ParameterState::kUpdated}) {
    EXPECT_NO_THROW(life.MoveTo(next));
  }
  try {
    life.MoveTo(ParameterState::kPartitioned);
    FAIL() << "an updated shard was discarded";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "parameters cannot go from updated to partitioned");
  }
}

TEST(LearningRateSchedule, WarmsUpThenFallsToATenth) {
  const LearningRateSchedule schedule{.peak = 2.0, .warmup_steps = 4, .steps = 104};
  EXPECT_DOUBLE_EQ(schedule.At(0), 0.5);
  EXPECT_DOUBLE_EQ(schedule.At(3), 2.0);
  EXPECT_DOUBLE_EQ(schedule.At(4), 2.0);
  EXPECT_NEAR(schedule.At(54), 2.0 * (0.1 + 0.9 * 0.5), 1e-12);
  EXPECT_NEAR(schedule.At(104), 0.2, 1e-12);
}

}  // namespace
}  // namespace dynamiccl::zero
