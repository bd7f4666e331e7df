// SPDX-License-Identifier: Apache-2.0
// Tests the host side of GPU work over the CUDA stand-in: which events form an interval, and which kernels
// are launched with which grid. A check whose kernel did not run must not count as a check without errors.
#include <gtest/gtest.h>

#include "tests/real_nccl/cuda_standin/cuda_standin.h"
#include "tools/bench/cuda/background_load.h"
#include "tools/bench/cuda/device_module.h"
#include "tools/bench/device.h"

namespace dynamiccl {
namespace {

class DeviceCuda : public testing::Test {
 protected:
  void SetUp() override {
    auto device = OpenCudaDevice({});
    ASSERT_TRUE(device) << device.error().message;
    device_ = std::move(*device);
  }

  static void RequireKernels() {
    if (cuda::FindKernelFile().empty())
      GTEST_SKIP() << "this build has no kernels: nvcc was not found (tools/setup/fetch_nvcc.sh)";
  }

  std::vector<double> IntervalsOf(int marks) {
    for (int i = 0; i < marks; ++i) EXPECT_TRUE(device_->Mark());
    const auto intervals = device_->Intervals();
    EXPECT_TRUE(intervals);
    return intervals.value_or(std::vector<double>{});
  }

  std::unique_ptr<Device> device_;
};

// The stand-in's clock advances by 1 us per event.
TEST_F(DeviceCuda, IntervalsAreBetweenNeighbouringMarks) {
  auto other = OpenCudaDevice({});
  ASSERT_TRUE(other);
  ASSERT_TRUE(device_->Mark());
  ASSERT_TRUE(device_->Mark());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE((*other)->Mark());
  ASSERT_TRUE(device_->Mark());
  const auto intervals = device_->Intervals();
  ASSERT_TRUE(intervals);
  ASSERT_EQ(intervals->size(), 2u);
  EXPECT_NEAR((*intervals)[0], 1, 1e-3);
  EXPECT_NEAR((*intervals)[1], 5, 1e-3);
}

TEST_F(DeviceCuda, ClearedMarksLeaveNothingBehind) {
  EXPECT_EQ(IntervalsOf(4).size(), 3u);
  device_->ClearMarks();
  EXPECT_TRUE(IntervalsOf(1).empty());
  device_->ClearMarks();
  // The second round records the first round's first event again. No interval may span both rounds.
  for (const double interval : IntervalsOf(3)) EXPECT_NEAR(interval, 1, 1e-3);
}

TEST_F(DeviceCuda, RanksBeyondTheGpusShareThem) {
  const int devices = cuda_standin_devices();
  EXPECT_TRUE(OpenCudaDevice({.local_rank = devices}));
  EXPECT_TRUE(OpenCudaDevice({.local_rank = 3 * devices + 1}));
}

TEST_F(DeviceCuda, CopiesAndTheHostsCheckFindWrongElements) {
  const CheckedCall call{.collective = TestedCollective::kBroadcast, .count = 100, .n_ranks = 2};
  const auto buffer = device_->Allocate(400);
  ASSERT_TRUE(buffer);
  std::vector<std::byte> data = InputOf(call, 0);
  StoreElement(call.type, data.data() + 40, 9);
  ASSERT_TRUE(device_->CopyIn(*buffer, data.data(), data.size()));
  const auto wrong = device_->Device::CountWrong(call, 1, *buffer);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(*wrong, 1u);
}

TEST_F(DeviceCuda, ACheckThatDidNotRunIsAnError) {
  RequireKernels();
  if (IsSkipped()) return;
  const CheckedCall call{.collective = TestedCollective::kBroadcast, .count = 1000, .n_ranks = 2};
  const auto buffer = device_->Allocate(4000);
  ASSERT_TRUE(buffer);
  ASSERT_TRUE(device_->FillInput(call, 0, *buffer));
  cuda_standin_launch last{};
  const uint64_t before = cuda_standin_thread_launches(&last);
  EXPECT_STREQ(last.kernel, "dynamiccl_fill_input");
  EXPECT_EQ(last.grid, 4u);
  EXPECT_EQ(last.block, 256u);
  const auto wrong = device_->CountWrong(call, 0, *buffer);
  EXPECT_EQ(cuda_standin_thread_launches(&last), before + 1);
  EXPECT_STREQ(last.kernel, "dynamiccl_check_result");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("0 of 1000 elements"), std::string::npos) << wrong.error().message;
}

TEST_F(DeviceCuda, OnlyRootsCheckWhatOnlyRootsReceive) {
  const CheckedCall call{.collective = TestedCollective::kReduce, .count = 1000, .root = 1, .n_ranks = 2};
  const uint64_t before = cuda_standin_thread_launches(nullptr);
  const auto wrong = device_->CountWrong(call, 0, nullptr);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(*wrong, 0u);
  EXPECT_EQ(cuda_standin_thread_launches(nullptr), before);
}

TEST_F(DeviceCuda, ALoadIsLaunchedAsPlannedAndItsAbsenceIsSeen) {
  RequireKernels();
  if (IsSkipped()) return;
  auto load = cuda::BackgroundLoad::Prepare({cuda::LoadKind::kMemory, 0.5}, 0);
  ASSERT_TRUE(load) << load.error().message;
  ASSERT_NE(*load, nullptr);
  const uint64_t before = cuda_standin_thread_launches(nullptr);
  ASSERT_TRUE((*load)->Start());
  cuda_standin_launch last{};
  EXPECT_EQ(cuda_standin_thread_launches(&last), before + 1);
  EXPECT_STREQ(last.kernel, "dynamiccl_background_load");
  EXPECT_EQ(last.grid, (*load)->plan().grid.blocks);
  EXPECT_EQ(last.block, 1024u);
  const auto report = (*load)->Stop();
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("0 of 99 blocks ran"), std::string::npos) << report.error().message;
}

TEST_F(DeviceCuda, OneLoadAGpu) {
  RequireKernels();
  if (IsSkipped()) return;
  const auto second = cuda::BackgroundLoad::Prepare({}, cuda_standin_devices());
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(*second, nullptr);
}

TEST_F(DeviceCuda, AFileThatIsNoKernelsIsRefusedWithItsName) {
  const std::string path = testing::TempDir() + "/no_kernels.fatbin";
  for (const char* content : {"", "not a fat binary"}) {
    FILE* file = std::fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr);
    std::fputs(content, file);
    std::fclose(file);
    const auto module = cuda::DeviceModule::Load(path);
    ASSERT_FALSE(module);
    EXPECT_NE(module.error().message.find(path), std::string::npos) << module.error().message;
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace dynamiccl
