// SPDX-License-Identifier: Apache-2.0
// Tests rules for communicators on NVIDIA's library. All ranks set minCTAs and maxCTAs at initialisation,
// which changes how many channels a tuner can get.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/real_nccl/real_nccl_run.h"
#include "tests/real_nccl/require_release.h"

namespace dynamiccl::real_nccl {
namespace {

constexpr int kAsked = 24;

class CommunicatorCtas : public testing::TestWithParam<NcclRelease> {
 protected:
  void SetUp() override {
    REAL_NCCL_REQUIRE_RELEASE(GetParam());
    scratch_ = testing::TempDir() + "/real_nccl_ctas_" + std::to_string(GetParam().minor);
    std::filesystem::create_directories(scratch_);
    request_ = {.release = GetParam(), .scratch_folder = scratch_, .door = Door::kPreload};
    // DynamICCL leaves the first call of each function and size to NCCL, so each size comes twice.
    request_.bytes = {65536, 65536, 64 << 20, 64 << 20};
  }
  void TearDown() override {
    if (!scratch_.empty()) std::filesystem::remove_all(scratch_);
  }

  // Returns the channels of the second AllReduce of each size.
  std::vector<int> Channels(const std::string& communicators) {
    std::ofstream(scratch_ + "/rules.toml")
        << "version = 1\n[[rule]]\ncollective = \"allreduce\"\nconfig = \"ring/simple/" << kAsked << "\"\n"
        << communicators;
    request_.environment = {{"DYNAMICCL_RULES", scratch_ + "/rules.toml"},
                            {"DYNAMICCL_ATTEST_TIMEOUT_MS", "60000"}};
    const RunOutcome outcome = RunDriver(request_);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_EQ(outcome.output.find("as the program asks"), std::string::npos) << outcome.output;
    std::vector<int> all;
    for (const TuningLine& choice : outcome.choices) {
      if (choice.function == "AllReduce") all.push_back(choice.channels());
    }
    if (all.size() != 4) {
      ADD_FAILURE() << outcome.output;
      return {0, 0};
    }
    return {all[1], all[3]};
  }

  RunRequest request_;
  std::string scratch_;
};

// 24 channels are more than NCCL makes by itself. A small call still gets fewer, because NCCL considers the
// traffic of each channel.
TEST_P(CommunicatorCtas, GiveATunerTheChannelsThatItNames) {
  const std::vector<int> alone = Channels("");
  const std::vector<int> raised = Channels("[[communicator]]\nranks = 16\nmin_ctas = 24\n");
  EXPECT_LT(alone[1], kAsked);
  EXPECT_EQ(raised[1], kAsked);
  EXPECT_GE(raised[0], alone[0]);
  EXPECT_LT(raised[0], kAsked);
}

TEST_P(CommunicatorCtas, AreAnUpperLimitToo) {
  EXPECT_EQ(Channels("[[communicator]]\nranks = 16\nmax_ctas = 4\n")[1], 4);
}

INSTANTIATE_TEST_SUITE_P(Releases, CommunicatorCtas,
                         testing::Values(NcclRelease{2, 28, 9}, NcclRelease{2, 32, 3}),
                         [](const auto& tested) { return "V2_" + std::to_string(tested.param.minor); });

}  // namespace
}  // namespace dynamiccl::real_nccl
