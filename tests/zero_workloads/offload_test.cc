// SPDX-License-Identifier: Apache-2.0
// Tests optimizer states in files. The numbers must agree bit for bit, files must have the size that the
// formula gives, and errors must name the file and the reason.
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "tests/support/test_seed.h"
#include "tests/zero_workloads/rank_processes.h"
#include "zero_workloads/offload/optimizer_offload.h"
#include "zero_workloads/offload/state_file.h"

namespace dynamiccl::zero {
namespace {

using ::testing::HasSubstr;

OptimizerOffload InFiles(const TemporaryFolder& folder, int64_t buffer_bytes) {
  OptimizerOffload offload;
  offload.place = OptimizerOffload::Place::kNvme;
  offload.folder = (folder / "").string();
  offload.rank_name = "rank-0";
  offload.buffer_bytes = buffer_bytes;
  return offload;
}

std::string FailureOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::runtime_error& failure) {
    return failure.what();
  }
  return "none";
}

TEST(StateFile, HasWholeBlocksIsZeroAndGoesAwayWithTheObject) {
  const TemporaryFolder folder;
  const std::string path = (folder / "states").string();
  {
    const StateFile file(path, 3 * kBlockElements + 1);
    EXPECT_EQ(file.bytes(), 4 * kDiskBlock);
    EXPECT_EQ(std::filesystem::file_size(path), 4u * kDiskBlock);
    EXPECT_EQ(file.mapped().numel(), 3 * kBlockElements + 1);
    EXPECT_EQ(file.mapped().abs().sum().item<float>(), 0.0f);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

// Data that is written around the page cache must be visible through it, and vice versa.
TEST(StateFile, MappingAndTransfersSeeTheSame) {
  const TemporaryFolder folder;
  const StateFile file((folder / "states").string(), 4 * kBlockElements);
  alignas(kDiskBlock) static float memory[2 * kBlockElements];
  for (int64_t i = 0; i < 2 * kBlockElements; ++i) memory[i] = static_cast<float>(i);
  file.Write(kBlockElements, 2, memory);
  EXPECT_EQ(file.mapped()[kBlockElements + 17].item<float>(), 17.0f);
  EXPECT_EQ(file.mapped()[3 * kBlockElements].item<float>(), 0.0f);
  file.mapped().narrow(0, 2 * kBlockElements, 5).fill_(7.0f);
  file.Read(2 * kBlockElements, 1, memory);
  EXPECT_EQ(memory[4], 7.0f);
  EXPECT_EQ(memory[5], static_cast<float>(kBlockElements + 5));
}

TEST(StateFile, FailuresNameTheFileAndTheReason) {
  const TemporaryFolder folder;
  EXPECT_THAT(FailureOf([] { StateFile("/no/such/folder/states", 10); }),
              HasSubstr("cannot create '/no/such/folder/states': No such file or directory"));
  const std::string path = (folder / "states").string();
  const StateFile file(path, 2 * kBlockElements);
  EXPECT_THAT(FailureOf([&] { StateFile(path, 10); }), HasSubstr(path + ": is in use by another process"));
  EXPECT_EQ(std::filesystem::file_size(path), 2u * kDiskBlock);  // the refused opening has not truncated it
  alignas(kDiskBlock) static float memory[kBlockElements];
  std::filesystem::resize_file(path, kDiskBlock);
  EXPECT_THAT(FailureOf([&] { file.Read(kBlockElements, 1, memory); }),
              HasSubstr(path + ": cannot be read: the file ends too early"));
}

// Without the check, the write would lengthen the file again and leave zeros in its middle.
TEST(StateFile, IsNotWrittenOnAfterAnotherProcessCutIt) {
  const TemporaryFolder folder;
  const std::string path = (folder / "states").string();
  const StateFile file(path, 4 * kBlockElements);
  alignas(kDiskBlock) static float memory[kBlockElements];
  std::filesystem::resize_file(path, kDiskBlock);
  EXPECT_THAT(FailureOf([&] { file.Write(3 * kBlockElements, 1, memory); }),
              HasSubstr(path + ": it was cut to 4096 of 16384 bytes"));
}

// A rank that owns no unit has no states to offload.
TEST(FileAdamW, StepsWithoutElements) {
  const TemporaryFolder folder;
  const auto none = MakeAdamW(0, InFiles(folder, kDiskBlock), {}, at::kCPU);
  none->Step(at::empty({0}), 1e-2, {});
  EXPECT_EQ(none->steps(), 1);
  EXPECT_EQ(none->master().numel(), 0);
}

// For any number of elements and any size of sub-group, the states after some steps must equal those of a
// fused step over all elements.
TEST(FileAdamW, EqualsAdamWInMemory) {
  const unsigned seed = test::TestSeed(1);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 20; ++round) {
    const int64_t elements = 128 * draw(1, 200), buffer_bytes = draw(kDiskBlock, 12 * kDiskBlock);
    SCOPED_TRACE(std::to_string(elements) + " elements, buffers of " + std::to_string(buffer_bytes));
    const TemporaryFolder folder;
    const auto reference = MakeAdamW(elements, {}, {}, at::kCPU);
    const auto in_files = MakeAdamW(elements, InFiles(folder, buffer_bytes), {}, at::kCPU);
    const at::Tensor first = at::randn({elements});
    reference->master().copy_(first);
    in_files->master().copy_(first);
    const at::Tensor copy = at::empty({elements}, at::kBFloat16);
    for (int step = 0; step < 4; ++step) {
      const at::Tensor gradients = at::randn({elements});
      reference->Step(gradients, 1e-2, {});
      in_files->Step(gradients, 1e-2, copy);
      ASSERT_TRUE(at::equal(reference->master(), in_files->master()));
      ASSERT_TRUE(at::equal(copy, reference->master().to(at::kBFloat16)));
    }
    const OffloadTraffic& traffic = *TrafficOf(*in_files);
    const int64_t blocks = (elements + kBlockElements - 1) / kBlockElements;
    EXPECT_EQ(traffic.file_bytes, 3 * blocks * kDiskBlock);
    EXPECT_EQ(traffic.read_bytes, 4 * 3 * blocks * kDiskBlock);
    EXPECT_EQ(traffic.written_bytes, traffic.read_bytes);
  }
}

// A GPU run takes states from host memory in slices. Steps in slices must round as steps over the whole.
TEST(AdamW, SlicesRoundAsTheWhole) {
  const int64_t elements = 128 * 100;
  const at::Tensor first = at::randn({elements});
  AdamW whole(AdamW::ZeroStates(elements, at::kCPU), {}),
      sliced(AdamW::ZeroStates(elements, at::kCPU), {}, 384);
  whole.master().copy_(first);
  sliced.master().copy_(first);
  for (int step = 0; step < 5; ++step) {
    const at::Tensor gradients = at::randn({elements});
    whole.Step(gradients, 1e-2, {});
    sliced.Step(gradients, 1e-2, {});
    ASSERT_TRUE(at::equal(whole.master(), sliced.master()));
  }
}

class OffloadedTraining : public testing::Test {
 protected:
  std::string Nvme() const { return "nvme:" + (folder_ / "").string(); }
  std::vector<std::string> With(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--offload-optimizer", Nvme(), "--offload-buffer-bytes", "64K"});
    return arguments;
  }
  TemporaryFolder folder_;
};

TEST_F(OffloadedTraining, GivesTheSameNumbersInAllStages) {
  for (const char* type : {"fp32", "bf16"}) {
    for (const char* stage : {"0", "1", "2", "3"}) {
      if (type == std::string("bf16") && stage == std::string("1")) continue;  // its states are stage 2's
      SCOPED_TRACE(std::string("stage ") + stage + " " + type);
      const std::vector<std::string> arguments = {"--stage", stage, "--dtype", type, "--steps", "10"};
      const TrainingReport here = TrainSmall(2, arguments), offloaded = TrainSmall(2, With(arguments));
      ASSERT_EQ(here.losses.size(), 10u);
      EXPECT_EQ(here.losses, offloaded.losses);
      EXPECT_EQ(here.parameters_sha256, offloaded.parameters_sha256);
      // The only states in memory are the ring: three buffers for each of three states, and one block.
      EXPECT_EQ(offloaded.memory.peak.at("master"), 0);
      EXPECT_EQ(offloaded.memory.peak.at("moments"), 0);
      EXPECT_EQ(offloaded.memory.peak.at("offload"), 9 * 65536 + kDiskBlock);
      EXPECT_TRUE(std::filesystem::is_empty(folder_ / ""));
    }
  }
}

std::vector<std::string> OnHost(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--offload-optimizer", "cpu", "--offload-buffer-bytes", "64K"});
  return arguments;
}

// The states are in host memory, and go to the device and back once per step.
TEST(OffloadToHost, GivesTheSameNumbersInAllStages) {
  for (const char* type : {"fp32", "bf16"}) {
    for (const char* stage : {"0", "1", "2", "3"}) {
      if (type == std::string("bf16") && stage == std::string("1")) continue;  // its states are stage 2's
      SCOPED_TRACE(std::string("stage ") + stage + " " + type);
      const std::vector<std::string> arguments = {"--stage", stage, "--dtype", type, "--steps", "10"};
      const TrainingReport here = TrainSmall(2, arguments), offloaded = TrainSmall(2, OnHost(arguments));
      ASSERT_EQ(here.losses.size(), 10u);
      EXPECT_EQ(here.losses, offloaded.losses);
      EXPECT_EQ(here.parameters_sha256, offloaded.parameters_sha256);
      EXPECT_EQ(offloaded.memory.peak.at("master"), 0);
      EXPECT_EQ(offloaded.memory.peak.at("moments"), 0);
      EXPECT_EQ(offloaded.memory.peak.at("offload"), 3 * 65536);
      EXPECT_LT(offloaded.memory.peak.at("total"), here.memory.peak.at("total"));
      const int64_t states = here.memory.peak.at("master") + here.memory.peak.at("moments");
      const std::map<std::string, int64_t> expected = {{"current", states},
                                                       {"peak", states},
                                                       {"to_device_bytes", 10 * states},
                                                       {"to_host_bytes", 10 * states}};
      EXPECT_EQ(offloaded.host_memory, expected);
      EXPECT_TRUE(here.host_memory.empty());
    }
  }
}

TEST(OffloadToHost, TrainsWhereTheStatesDoNotFitOnTheDevice) {
  const TrainingReport free = TrainSmall(2, {"--stage", "0"});
  const std::string cap = std::to_string(free.memory.peak.at("total") * 9 / 10 / 1024) + "K";
  const std::vector<std::string> capped = {"--stage", "0", "--memory-cap", cap};
  std::vector<std::string> arguments = SmallModel();
  arguments.insert(arguments.end(), capped.begin(), capped.end());
  EXPECT_EQ(RunRanks({2, arguments})[0].exit_code, 3);
  EXPECT_EQ(TrainSmall(2, OnHost(capped)).losses, free.losses);
}

TEST(OffloadToHost, CheckpointsOfOffloadedStatesGoOnAsBefore) {
  const TemporaryFolder folder;
  const std::string checkpoints = (folder / "checkpoints").string();
  const std::vector<std::string> saving = {"--stage", "2", "--checkpoint-dir", checkpoints};
  const auto with = [&saving](std::vector<std::string> more) {
    more.insert(more.begin(), saving.begin(), saving.end());
    return more;
  };
  const TrainingReport whole = TrainSmall(2, {"--stage", "2", "--steps", "6", "--warmup", "1"});
  // The learning rate of a step depends on --steps. So the first part is a run of 6 steps that is cut at step
  // 4.
  TrainSmall(2, OnHost(with({"--steps", "6", "--warmup", "1", "--checkpoint-every", "4"})));
  const TrainingReport rest = TrainSmall(2, OnHost(with({"--steps", "6", "--warmup", "1", "--resume", "4"})));
  ASSERT_EQ(rest.losses.size(), 2u);
  EXPECT_EQ(rest.losses[1], whole.losses[5]);
  EXPECT_EQ(rest.parameters_sha256, whole.parameters_sha256);
}

// 2 blocks keep 12 sequences of 32 x 64 numbers of 4 bytes. Each of the two ranks keeps half of them.
TEST(OffloadToHost, CountsTheCheckpointsOfActivations) {
  const TrainingReport run = TrainSmall(
      2, {"--tensor-parallel", "2", "--activation-checkpoints", "partitioned_cpu", "--steps", "3"});
  const int64_t kept = 2 * 12 * 32 * 64 * 4 / 2;
  EXPECT_EQ(run.host_memory.at("peak"), kept);
  EXPECT_EQ(run.host_memory.at("current"), 0);
  EXPECT_EQ(run.host_memory.at("to_host_bytes"), 3 * kept);
  EXPECT_EQ(run.host_memory.at("to_device_bytes"), 3 * kept);
}

TEST_F(OffloadedTraining, ThreeRanksSummedInRankOrder) {
  const std::map<std::string, std::string> environment = {{"HOSTCCL_SUM", "rank_order"}};
  const TrainingReport here = TrainSmall(3, {"--stage", "3"}, environment);
  EXPECT_EQ(here.losses, TrainSmall(3, With({"--stage", "3"}), environment).losses);
}

void ExpectFailure(std::vector<std::string> more, int code, const std::string& message,
                   const std::map<std::string, std::string>& environment = {}) {
  std::vector<std::string> arguments = SmallModel();
  arguments.insert(arguments.end(), more.begin(), more.end());
  const RankOutcome rank = RunRanks({.ranks = 1, .arguments = arguments, .environment = environment})[0];
  EXPECT_EQ(rank.exit_code, code) << rank.output;
  EXPECT_THAT(rank.output, HasSubstr(message));
}

TEST_F(OffloadedTraining, ADiskThatFailsEndsTheRunWithFileAndErrno) {
  ExpectFailure(With({}), 4, ".f32: cannot be written: No space left on device (errno 28)",
                {{"LD_PRELOAD", FAIL_IO_LIBRARY}, {"FAIL_IO", "pwrite:30:28"}});
  ExpectFailure(With({}), 4, ".f32: cannot be read: Input/output error (errno 5)",
                {{"LD_PRELOAD", FAIL_IO_LIBRARY}, {"FAIL_IO", "pread:20:5"}});
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / ""));
}

TEST_F(OffloadedTraining, WhatCannotBeIsAnError) {
  ExpectFailure({"--offload-optimizer", "disk"}, 2, "--offload-optimizer disk is none");
  ExpectFailure({"--offload-optimizer", "nvme:"}, 2, "--offload-optimizer nvme: is none");
  ExpectFailure({"--offload-optimizer", "nvme:/no/such"}, 2, "nvme:/no/such: no such folder");
  ExpectFailure({"--offload-optimizer", Nvme(), "--offload-buffer-bytes", "100"}, 2,
                "--offload-buffer-bytes 100 is out of range: at least 4096");
}

}  // namespace
}  // namespace dynamiccl::zero
