// SPDX-License-Identifier: Apache-2.0
// A fixture for tests that run jobs. It provides a folder for the jobs' files, which is removed after the
// test, and reads the results of the jobs.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "src/policy/policy_file.h"
#include "tests/integration/nccl_job_run.h"
#include "tests/support/sample_policy.h"

namespace dynamiccl::testing {

inline const Environment kShowChoices{{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_SUBSYS", "TUNING"}};

inline Environment With(Environment environment, const Environment& more) {
  for (const auto& [name, value] : more) environment[name] = value;
  return environment;
}

class JobTest : public ::testing::Test {
 protected:
  JobTest() {
    std::string folder = std::filesystem::temp_directory_path() / "dynamiccl-preload-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~JobTest() override {
    std::filesystem::remove_all(folder_);
    for (const std::string& folder : job_folders_) std::filesystem::remove_all(folder);
  }

  JobResult Run(const JobOptions& options) {
    JobResult job = RunJob(options);
    job_folders_.push_back(job.folder);
    return job;
  }

  std::string File(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
    return folder_ + "/" + name;
  }

  std::string PolicyFile(const std::string& name, Algorithm algorithm, Protocol protocol) const {
    const auto policy = test::MakePolicyThatPrefers(algorithm, protocol);
    EXPECT_TRUE(WritePolicyFile(folder_ + "/" + name, *policy));
    return folder_ + "/" + name;
  }

  // Returns what the job's NCCL library used on rank 0, call by call.
  static std::vector<std::string> Choices(const JobResult& job) {
    std::vector<std::string> choices;
    for (const std::string& line : LinesWith(job.output[0], " -> Algo ")) {
      choices.push_back(line.substr(line.find("INFO ")));
    }
    return choices;
  }

  // Requires that all ranks decided the same at every call.
  static void ExpectEqualLogs(const JobResult& job, int n_ranks) {
    const std::string first = job.Text("decisions.0");
    EXPECT_FALSE(first.empty()) << job.AllOutput();
    for (int rank = 1; rank < n_ranks; ++rank)
      EXPECT_EQ(job.Text("decisions." + std::to_string(rank)), first) << rank;
  }

  std::string folder_;
  std::vector<std::string> job_folders_;
};

}  // namespace dynamiccl::testing
