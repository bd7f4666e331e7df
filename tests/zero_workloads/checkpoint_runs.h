// SPDX-License-Identifier: Apache-2.0
// Starts training runs that save and continue, for tests of checkpoints.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/zero_workloads/rank_processes.h"

namespace dynamiccl::zero {

using Arguments = std::vector<std::string>;

inline Arguments operator+(Arguments first, const Arguments& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Returns arguments for 8 steps with a save after every second step.
inline Arguments Saving(const std::filesystem::path& folder) {
  return {"--checkpoint-dir",
          folder.string(),
          "--checkpoint-every",
          "2",
          "--keep-checkpoints",
          "9",
          "--steps",
          "8"};
}

inline std::string StepFolder(const std::filesystem::path& folder, int step) {
  return (folder / ("step-0000000" + std::to_string(step))).string();
}

// Requires that the later losses and the parameters equal those of the uninterrupted run bit for bit.
inline void ExpectContinues(const TrainingReport& whole, const TrainingReport& rest,
                            const std::string& what) {
  ASSERT_LE(rest.losses.size(), whole.losses.size()) << what;
  const std::vector<std::string> tail(whole.losses.end() - std::ssize(rest.losses), whole.losses.end());
  EXPECT_EQ(rest.losses, tail) << what;
  EXPECT_EQ(rest.parameters_sha256, whole.parameters_sha256) << what;
}

inline RankOutcome Checkpoint(const Arguments& arguments) {
  return RunRanks({.arguments = Arguments{"checkpoint"} + arguments}).front();
}

// Returns the content of a checkpoint as bytes. They do not depend on the number of ranks that wrote it.
inline std::string Exported(const std::filesystem::path& folder, int step, const Arguments& more = {}) {
  const TemporaryFolder place;
  const std::string file = (place / "exported").string();
  const RankOutcome exported =
      Checkpoint(Arguments{"export", folder.string(), file, "--step", std::to_string(step)} + more);
  EXPECT_EQ(exported.exit_code, 0) << exported.output;
  std::ifstream bytes(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(bytes), std::istreambuf_iterator<char>()};
}

inline Launch SmallRun(int ranks, const Arguments& arguments) {
  Launch launch{.ranks = ranks, .arguments = SmallModel()};
  for (const std::string& argument : arguments) {
    // This number of steps replaces that of SmallModel.
    if (argument == "--steps") {
      const auto steps = std::find(launch.arguments.begin(), launch.arguments.end(), argument);
      launch.arguments.erase(steps, steps + 2);
    }
  }
  launch.arguments = launch.arguments + arguments;
  return launch;
}

}  // namespace dynamiccl::zero
