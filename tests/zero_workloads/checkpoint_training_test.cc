// SPDX-License-Identifier: Apache-2.0
// Tests that a run which continues from a checkpoint computes the same as an uninterrupted one: bit for bit
// at the same world size, in all stages.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include "tests/zero_workloads/checkpoint_runs.h"
#include "tests/zero_workloads/counted_traffic.h"

namespace dynamiccl::zero {
namespace {

namespace fs = std::filesystem;

const Arguments kStages = {"0", "1", "2", "3"};

class FromStage : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(FromStage, EveryStageGoesOn) {
  const auto& [stage, type] = GetParam();
  const TemporaryFolder place;
  const fs::path folder = place / "checkpoints";
  const TrainingReport whole = TrainSmall(2, Saving(folder) + Arguments{"--stage", stage, "--dtype", type});
  ASSERT_EQ(whole.losses.size(), 8u);
  for (const std::string& other : kStages) {
    const TrainingReport rest =
        TrainSmall(2, Saving(folder) + Arguments{"--stage", other, "--dtype", type, "--resume", "4"});
    EXPECT_EQ(rest.losses.size(), 4u);
    ExpectContinues(whole, rest, "from stage " + stage + " to " + other + " in " + type);
  }
}

INSTANTIATE_TEST_SUITE_P(Resuming, FromStage,
                         ::testing::Combine(::testing::ValuesIn(kStages), ::testing::Values("fp32", "bf16")));

TEST(Resuming, TheLossScaleGoesOn) {
  const TemporaryFolder place;
  const fs::path folder = place / "checkpoints";
  // The loss scale doubles after every third step, so its step counter is not zero at the save.
  const Arguments scaled = {"--dtype", "fp16", "--loss-scale", "dynamic", "--loss-scale-growth", "3"};
  const TrainingReport whole = TrainSmall(2, Saving(folder) + scaled + Arguments{"--stage", "2"});
  const TrainingReport rest =
      TrainSmall(2, Saving(folder) + scaled + Arguments{"--stage", "3", "--resume", "4"});
  EXPECT_EQ(rest.losses.size(), 4u);
  ExpectContinues(whole, rest, "fp16");
}

TEST(Resuming, AFixedLossScaleIsWhatTheOptionsSay) {
  const TemporaryFolder place;
  const Arguments half = {"--dtype", "fp16", "--stage", "1"}, fixed = {"--loss-scale", "8"},
                  rising = {"--loss-scale", "dynamic", "--first-loss-scale", "1024"};
  for (const auto& [before, after, scale] :
       std::vector<std::tuple<Arguments, Arguments, double>>{{rising, fixed, 8}, {fixed, rising, 1024}}) {
    const fs::path folder = place / before.back();
    TrainSmall(2, Saving(folder) + half + before);
    const TrainingReport rest = TrainSmall(2, Saving(folder) + half + after + Arguments{"--resume", "4"});
    EXPECT_EQ(rest.loss_scales, std::vector<double>(4, scale));
  }
}

TEST(Resuming, OffloadedStatesAreSavedAndGoOn) {
  const TemporaryFolder place;
  const fs::path folder = place / "checkpoints", files = place / "files";
  fs::create_directory(files);
  const Arguments offload = {"--offload-optimizer", "nvme:" + files.string()};
  const TrainingReport whole = TrainSmall(2, Saving(folder) + offload + Arguments{"--stage", "2"});
  EXPECT_EQ(whole.losses, TrainSmall(2, {"--steps", "8", "--stage", "2"}).losses);
  ExpectContinues(whole, TrainSmall(2, Saving(folder) + Arguments{"--stage", "3", "--resume", "4"}),
                  "to memory");
  const TrainingReport rest =
      TrainSmall(2, Saving(folder) + offload + Arguments{"--stage", "1", "--dtype", "fp32", "--resume", "4"});
  EXPECT_EQ(rest.losses.size(), 4u);
  ExpectContinues(whole, rest, "to files");
}

TEST(Resuming, AnotherWorldSizeAgreesWithinRounding) {
  const TemporaryFolder place;
  const fs::path folder = place / "checkpoints";
  const TrainingReport whole = TrainSmall(2, Saving(folder) + Arguments{"--stage", "2"});
  for (const auto& [ranks, stage] : std::vector<std::pair<int, std::string>>{{1, "0"}, {3, "3"}, {4, "1"}}) {
    const TrainingReport rest =
        TrainSmall(ranks, Saving(folder) + Arguments{"--stage", stage, "--resume", "4"});
    ASSERT_EQ(rest.losses.size(), 4u);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(std::stod(rest.losses[i]), std::stod(whole.losses[i + 4]), 1e-5) << ranks << " ranks";
    }
  }
}

TEST(Saving, AsyncOrNotChangesNothing) {
  const TemporaryFolder place;
  const TrainingReport none = TrainSmall(2, {"--steps", "8", "--stage", "2"});
  const TrainingReport sync = TrainSmall(2, Saving(place / "sync") + Arguments{"--stage", "2"});
  const TrainingReport async =
      TrainSmall(2, Saving(place / "async") + Arguments{"--stage", "2", "--checkpoint-async"});
  ExpectContinues(none, sync, "sync");
  ExpectContinues(none, async, "async");
  EXPECT_EQ(none.losses, sync.losses);
  EXPECT_EQ(none.losses, async.losses);
  for (const int step : {2, 4, 6, 8}) {
    EXPECT_EQ(Exported(place / "sync", step, {"--optimizer-state"}),
              Exported(place / "async", step, {"--optimizer-state"}));
  }
}

// If a rank waited for a slow save inside a single call, hostccl's time-out would end it. So the ranks issue
// a call repeatedly while they wait.
TEST(Saving, RanksMeetWhileTheyWaitForASave) {
  const TemporaryFolder place;
  const auto allreduces = [&](const std::string& name,
                              const std::map<std::string, std::string>& environment) {
    const Arguments run = {"--steps", "2", "--checkpoint-dir", (place / name).string()};
    return CountTraffic(2, run, environment)[0].at("AllReduce").calls;
  };
  // The delay is half a second, and the ranks issue a call every tenth of a second.
  EXPECT_GE(allreduces("slow", {{"HOSTCCL_FAILPOINT", "checkpoint.part:delay"}}), allreduces("fast", {}) + 3);
}

// Runs of one world size must write equal states. Sums are rounded differently at other world sizes. There,
// runs with a learning rate of 0 are compared: they keep the initial weights, which must be equal.
TEST(Saving, ContentDoesNotDependOnStageOrWorldSize) {
  const TemporaryFolder place;
  std::string state, weights;
  for (const auto& [ranks, stage] : std::vector<std::pair<int, std::string>>{
           {2, "0"}, {2, "1"}, {2, "2"}, {2, "3"}, {1, "0"}, {3, "3"}, {5, "0"}, {7, "1"}}) {
    const std::string name = std::to_string(ranks) + "." + stage;
    const Arguments run = {"--stage", stage, "--steps", "1", "--batch", "210", "--sequence", "4"};
    if (ranks == 2) {
      TrainSmall(ranks, run + Arguments{"--checkpoint-dir", (place / name).string()});
      const std::string bytes = Exported(place / name, 1, {"--optimizer-state"});
      if (state.empty()) state = bytes;
      EXPECT_EQ(bytes, state) << name;
    }
    TrainSmall(ranks,
               run + Arguments{"--learning-rate", "0", "--checkpoint-dir", (place / ("0." + name)).string()});
    const std::string bytes = Exported(place / ("0." + name), 1);
    if (weights.empty()) weights = bytes;
    EXPECT_EQ(bytes, weights) << name;
  }
}

// Tensor-parallel ranks hold slices of rows, of columns, or of each third of a layer's rows.
TEST(Resuming, AnotherTensorParallelDegreeAgreesWithinRounding) {
  const TemporaryFolder place;
  const fs::path split = place / "split", whole = place / "whole";
  const TrainingReport by_two =
      TrainSmall(4, Saving(split) + Arguments{"--stage", "3", "--tensor-parallel", "2"});
  const TrainingReport by_one = TrainSmall(2, Saving(whole) + Arguments{"--stage", "1"});
  const auto expect_near = [](const TrainingReport& all, const TrainingReport& rest) {
    ASSERT_EQ(rest.losses.size(), 4u);
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(std::stod(rest.losses[i]), std::stod(all.losses[i + 4]), 1e-5);
  };
  expect_near(by_two, TrainSmall(2, Saving(split) + Arguments{"--stage", "1", "--resume", "4"}));
  expect_near(by_one, TrainSmall(2, Saving(whole) + Arguments{"--stage", "0", "--tensor-parallel", "2",
                                                              "--resume", "4"}));
}

TEST(Resuming, TheSameTensorParallelDegreeGoesOn) {
  const TemporaryFolder place;
  const fs::path folder = place / "checkpoints";
  const Arguments split = Saving(folder) + Arguments{"--tensor-parallel", "2"};
  const TrainingReport whole = TrainSmall(4, split + Arguments{"--stage", "0"});
  const TrainingReport rest = TrainSmall(4, split + Arguments{"--stage", "3", "--resume", "4"});
  EXPECT_EQ(rest.losses.size(), 4u);
  ExpectContinues(whole, rest, "tensor parallel");
}

TEST(Saving, ContentDoesNotDependOnTheTensorParallelDegree) {
  const TemporaryFolder place;
  const Arguments run = {"--steps", "1", "--learning-rate", "0", "--checkpoint-dir"};
  TrainSmall(1, run + Arguments{(place / "whole").string()});
  TrainSmall(4, run + Arguments{(place / "split").string(), "--tensor-parallel", "2", "--stage", "2"});
  EXPECT_EQ(Exported(place / "whole", 1), Exported(place / "split", 1));
}

TEST(Exporting, ImportedWeightsStartARun) {
  const TemporaryFolder place;
  const std::string folder = (place / "run").string(), file = (place / "weights.safetensors").string(),
                    imported = (place / "imported").string();
  const TrainingReport trained = TrainSmall(2, Saving(folder) + Arguments{"--stage", "3", "--eval-at-end"});
  EXPECT_EQ(Checkpoint({"export", folder, file}).exit_code, 0);
  const RankOutcome outcome = Checkpoint({"import", file, imported});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  // With a learning rate of 0, the weights stay as they are in the file.
  const TrainingReport evaluated =
      TrainSmall(2, {"--checkpoint-dir", imported, "--resume", "latest", "--steps", "1", "--learning-rate",
                     "0", "--stage", "1", "--eval-at-end"});
  EXPECT_EQ(evaluated.parameters_sha256, trained.parameters_sha256);
  EXPECT_EQ(evaluated.held_out_bits_per_byte, trained.held_out_bits_per_byte);
}

// If these weights were accepted, the blocks that the model lacks would be dropped silently.
TEST(Exporting, WeightsOfALargerModelAreRefused) {
  const TemporaryFolder place;
  const std::string folder = (place / "run").string(), file = (place / "weights.safetensors").string(),
                    imported = (place / "imported").string();
  TrainSmall(1, {"--steps", "1", "--checkpoint-dir", folder});
  EXPECT_EQ(Checkpoint({"export", folder, file}).exit_code, 0);
  EXPECT_EQ(Checkpoint({"import", file, imported}).exit_code, 0);
  Launch smaller = SmallRun(2, {"--checkpoint-dir", imported, "--resume", "latest"});
  *(std::find(smaller.arguments.begin(), smaller.arguments.end(), "--layers") + 1) = "1";
  const std::vector<RankOutcome> ranks = RunRanks(smaller);
  EXPECT_EQ(ranks[0].exit_code, 2);
  EXPECT_NE(ranks[0].output.find("error: block.1."), std::string::npos) << ranks[0].output;
  EXPECT_NE(ranks[0].output.find("is no parameter of this run's model"), std::string::npos);
}

class SavedRun : public ::testing::Test {
 protected:
  void SetUp() override { whole_ = TrainSmall(2, Saving(folder()) + Arguments{"--stage", "1"}); }
  fs::path folder() const { return place_ / "checkpoints"; }
  std::string DataOf(int step, int rank) const {
    return StepFolder(folder(), step) + "/rank-0000" + std::to_string(rank) + ".data";
  }
  static void Flip(const std::string& path, std::streamoff offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(offset);
    const char byte = static_cast<char>(file.get() ^ 4);
    file.seekp(offset);
    file.put(byte);
  }
  // If an option is given twice, the later value counts.
  std::vector<RankOutcome> Resume(const Arguments& arguments) const {
    Launch launch = SmallRun(2, Saving(folder()) + Arguments{"--stage", "1"} + arguments);
    const auto steps = std::find(arguments.begin(), arguments.end(), "--steps");
    if (steps != arguments.end()) {
      const auto first = std::find(launch.arguments.begin(), launch.arguments.end(), "--steps");
      launch.arguments.erase(first, first + 2);
    }
    return RunRanks(launch);
  }
  // Requires that both ranks end with exit code 2, and that one of them states this reason.
  void ExpectRefused(const Arguments& arguments, const std::string& reason) const {
    const std::vector<RankOutcome> ranks = Resume(arguments);
    std::string output;
    for (const RankOutcome& rank : ranks) output += rank.output;
    EXPECT_NE(output.find(reason), std::string::npos) << output;
    EXPECT_TRUE(ranks[0].exit_code == 2 || ranks[1].exit_code == 2) << output;
    EXPECT_NE(ranks[0].exit_code, 0);
    EXPECT_NE(ranks[1].exit_code, 0);
  }

  TemporaryFolder place_;
  TrainingReport whole_;
};

TEST_F(SavedRun, TheNewestIntactCheckpointWins) {
  Flip(DataOf(8, 1), 300'000);
  fs::resize_file(DataOf(6, 0), 1000);
  const fs::path json = place_ / "report.json";
  const std::vector<RankOutcome> ranks = Resume({"--resume", "latest", "--json", json.string()});
  ASSERT_EQ(ranks[0].exit_code, 0) << ranks[0].output;
  const std::string output = ranks[0].output + ranks[1].output;
  EXPECT_NE(output.find(DataOf(8, 1) + ": offset 262144: the checksum"), std::string::npos) << output;
  EXPECT_NE(output.find(DataOf(6, 0) + ": offset 1000: ends here"), std::string::npos) << output;
  EXPECT_NE(output.find("the checkpoint of step 6 is damaged and passed over"), std::string::npos) << output;
  EXPECT_NE(output.find("resumed from " + StepFolder(folder(), 4)), std::string::npos) << output;
  const TrainingReport rest = ReadReport(json);
  EXPECT_EQ(rest.losses.size(), 4u);
  ExpectContinues(whole_, rest, "after damage");
  const RankOutcome verified = Checkpoint({"verify", folder().string()});
  EXPECT_EQ(verified.exit_code, 0) << "what was damaged is set aside: " << verified.output;
}

// If the run continued from an older step, its first save would set aside the newer checkpoint, which is
// intact.
TEST_F(SavedRun, WhatCannotBeReadEndsTheRun) {
  const fs::path saved = place_ / "saved";
  fs::rename(DataOf(8, 1), saved);
  fs::create_directory(DataOf(8, 1));
  const std::vector<RankOutcome> ranks = Resume({"--resume", "latest"});
  const std::string output = ranks[0].output + ranks[1].output;
  EXPECT_NE(ranks[0].exit_code, 0);
  EXPECT_NE(ranks[1].exit_code, 0);
  EXPECT_NE(output.find(DataOf(8, 1) + ": not a regular file"), std::string::npos) << output;
  EXPECT_EQ(output.find("resumed"), std::string::npos) << output;
  fs::remove(DataOf(8, 1));
  fs::rename(saved, DataOf(8, 1));
  const RankOutcome verified = Checkpoint({"verify", folder().string()});
  EXPECT_EQ(verified.exit_code, 0) << verified.output;
  EXPECT_NE(verified.output.find("step 8: intact"), std::string::npos) << verified.output;
}

// The run continues from step 4 and next saves after step 8. Step 6 is older than that save and does not
// belong to this run, so it is set aside.
TEST_F(SavedRun, WhatTheRunDoesNotContinueIsSetAside) {
  const std::vector<RankOutcome> ranks =
      RunRanks(SmallRun(2, {"--checkpoint-dir", folder().string(), "--keep-checkpoints", "9", "--steps", "8",
                            "--stage", "1", "--resume", "4"}));
  ASSERT_EQ(ranks[0].exit_code, 0) << ranks[0].output;
  EXPECT_FALSE(fs::exists(StepFolder(folder(), 6)));
  EXPECT_TRUE(fs::exists(folder() / "set-aside-step-00000006/index"));
  for (const int step : {2, 4, 8}) EXPECT_TRUE(fs::exists(StepFolder(folder(), step))) << step;
}

TEST_F(SavedRun, AFileOfAnotherStepIsFound) {
  fs::copy_file(DataOf(4, 1), DataOf(8, 1), fs::copy_options::overwrite_existing);
  const std::vector<RankOutcome> ranks = Resume({"--resume", "latest"});
  EXPECT_EQ(ranks[0].exit_code, 0) << ranks[0].output;
  EXPECT_NE((ranks[0].output + ranks[1].output).find("the file is of step 4, the index of step 8"),
            std::string::npos);
}

TEST_F(SavedRun, ADamagedCheckpointThatWasNamedIsAnError) {
  Flip(DataOf(6, 0), 100);
  ExpectRefused({"--resume", "6"}, DataOf(6, 0) + ": offset 0: the checksum");
  for (const int step : {2, 4, 8}) Flip(StepFolder(folder(), step) + "/index", 70);
  ExpectRefused({"--resume", "latest"}, "no checkpoint is intact");
  const RankOutcome verified = Checkpoint({"verify", folder().string()});
  EXPECT_EQ(verified.exit_code, 2);
  EXPECT_NE(verified.output.find("4 of 4 checkpoints are damaged"), std::string::npos) << verified.output;
}

TEST_F(SavedRun, ARefusedRunLeavesTheReportOfTheRunBeforeIt) {
  const fs::path json = place_ / "report.json";
  std::ofstream(json) << "{}\n";
  ExpectRefused({"--json", json.string()}, "has checkpoints, up to step 8");
  EXPECT_EQ(fs::file_size(json), 3u);
  Launch anew = SmallRun(2, {"--steps", "2", "--json", json.string()});
  EXPECT_EQ(RunRanks(anew)[0].exit_code, 0);
  EXPECT_EQ(ReadReport(json).losses.size(), 2u) << "of the new run alone";
}

TEST_F(SavedRun, WhatMustAgreeIsNamed) {
  ExpectRefused({}, "has checkpoints, up to step 8");
  ExpectRefused({"--resume", "5"}, "no complete checkpoint of step 5; there is 2, 4, 6, 8");
  Launch other = SmallRun(2, Saving(folder()) + Arguments{"--resume", "latest"});
  *(std::find(other.arguments.begin(), other.arguments.end(), "--layers") + 1) = "3";
  const std::vector<RankOutcome> ranks = RunRanks(other);
  EXPECT_EQ(ranks[0].exit_code, 2);
  EXPECT_NE(ranks[0].output.find("saved with --layers 2, this run has 3"), std::string::npos)
      << ranks[0].output;
}

TEST_F(SavedRun, AtItsLastStepIsEvaluatedAndBeyondItRefused) {
  ExpectRefused({"--resume", "latest", "--steps", "6"}, "the checkpoint is of step 8, beyond --steps 6");
  const fs::path json = place_ / "report.json";
  const std::vector<RankOutcome> ranks = Resume({"--resume", "8", "--eval-at-end", "--json", json.string()});
  ASSERT_EQ(ranks[0].exit_code, 0) << ranks[0].output;
  EXPECT_GT(ReadReport(json).held_out_bits_per_byte, 0.0);
  EXPECT_EQ(ReadReport(json).parameters_sha256, whole_.parameters_sha256);
}

TEST_F(SavedRun, IsListed) {
  const RankOutcome listed = Checkpoint({"list", folder().string()});
  EXPECT_EQ(listed.exit_code, 0);
  for (const char* word : {"         2 ", "         8 ", "stage=1"}) {
    EXPECT_NE(listed.output.find(word), std::string::npos) << listed.output;
  }
}

TEST(Saving, AFullDiskEndsTheRunAndLeavesEarlierCheckpoints) {
  const TemporaryFolder place;
  const fs::path disk = place / "disk";
  fs::create_directory(disk);
  // The disk has room for one checkpoint of the small model (1.6 MB), but not for two.
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=2500k") != 0)
    GTEST_SKIP() << "no right to mount a small disk";
  for (const Arguments& mode : {Arguments{}, Arguments{"--checkpoint-async"}}) {
    const fs::path folder = disk / "checkpoints";
    const std::vector<RankOutcome> ranks = RunRanks(SmallRun(2, Saving(folder) + mode));
    const std::string output = ranks[0].output + ranks[1].output;
    EXPECT_NE(ranks[0].exit_code, 0);
    EXPECT_NE(ranks[1].exit_code, 0);
    EXPECT_TRUE(ranks[0].exit_code == 3 || ranks[1].exit_code == 3) << output;
    EXPECT_NE(output.find("No space left on device"), std::string::npos) << output;
    EXPECT_NE(output.find("earlier checkpoints are as they were"), std::string::npos) << output;
    EXPECT_TRUE(fs::exists(StepFolder(folder, 2)));
    EXPECT_FALSE(fs::exists(StepFolder(folder, 4)));
    const RankOutcome verified = Checkpoint({"verify", folder.string()});
    EXPECT_EQ(verified.exit_code, 0) << verified.output;
    fs::remove_all(folder);
  }
  umount(disk.c_str());
}

}  // namespace
}  // namespace dynamiccl::zero
