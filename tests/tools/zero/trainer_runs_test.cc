// SPDX-License-Identifier: Apache-2.0
#include "tools/zero/trainer_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;

// Returns how a run ends in which this shell script replaces the trainer.
Result<TrainerReport> TrainWith(const std::string& script) {
  auto runs = TrainerRuns::Open({.command = {"bash", "-c", script}, .n_ranks = 2});
  if (!runs) return tl::unexpected(runs.error());
  Result<TrainerReport> report = runs->Train({});
  std::filesystem::remove_all(runs->folder());  // The folder is kept after a failed run.
  return report;
}

TEST(TrainerRuns, ARankWithoutMemoryIsToldApart) {
  const auto report = TrainWith("echo 'error: out of memory: 8.00 MiB asked for' >&2; exit 3");
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().kind, ErrorKind::kUnavailable);
}

// Rank 0 notices the end of the rank without memory and itself ends first.
TEST(TrainerRuns, ARankWithoutMemoryIsToldApartWhereAnotherEndsFirst) {
  const std::string file = ::testing::TempDir() + "rank_1_lacks_memory_" + std::to_string(::getpid());
  const auto report = TrainWith("if [ $RANK = 1 ]; then echo 'error: out of memory' >&2; touch " + file +
                                "; exec sleep 60; fi; until [ -e " + file + " ]; do :; done; exit 4");
  std::filesystem::remove(file);
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().kind, ErrorKind::kUnavailable);
}

// Without this distinction, a search for the largest fitting model would answer that no model fits.
TEST(TrainerRuns, AnotherLackOfTheMachineIsAFailure) {
  const auto report = TrainWith("echo 'error: rank 0 cannot listen at 127.0.0.1:80' >&2; exit 3");
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().kind, ErrorKind::kPeerFailed);
  EXPECT_THAT(report.error().hint, HasSubstr("/log"));
}

}  // namespace
}  // namespace dynamiccl
