// SPDX-License-Identifier: Apache-2.0
// On a real GPU, the kernels must do the same as the functions on the host. The tests are skipped without a
// GPU.
#include <gtest/gtest.h>

#include <filesystem>

#include "tools/bench/cuda/background_load.h"
#include "tools/bench/cuda/device_module.h"
#include "tools/bench/device.h"

namespace dynamiccl {
namespace {

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "no GPU: there is no /dev/nvidiactl";
    if (cuda::FindKernelFile().empty()) GTEST_SKIP() << "this build has no kernels: nvcc was not found";
    auto device = OpenCudaDevice({});
    if (!device) GTEST_SKIP() << "no CUDA runtime: " << device.error().message;
    device_ = std::move(*device);
  }

  std::unique_ptr<Device> device_;
};

TEST_F(Gpu, FillsWhatTheHostFills) {
  for (int type = 0; type < kDataTypes; ++type) {
    const CheckedCall call{.count = 100'003, .type = static_cast<DataType>(type), .n_ranks = 3};
    const size_t bytes = SendCount(call) * ElementBytes(call.type);
    const auto buffer = device_->Allocate(bytes);
    ASSERT_TRUE(buffer);
    ASSERT_TRUE(device_->FillInput(call, 2, *buffer));
    std::vector<std::byte> filled(bytes);
    ASSERT_TRUE(device_->CopyOut(filled.data(), *buffer, bytes));
    EXPECT_EQ(filled, InputOf(call, 2)) << Name(call.type);
  }
}

TEST_F(Gpu, CountsWrongElementsAsTheHostDoes) {
  for (int type = 0; type < kDataTypes; ++type) {
    const CheckedCall call{.collective = TestedCollective::kBroadcast,
                           .count = 100'003,
                           .type = static_cast<DataType>(type),
                           .n_ranks = 3};
    std::vector<std::byte> data = InputOf(call, 0);
    for (const size_t spoilt : {0u, 77'777u, 100'002u})
      StoreElement(call.type, data.data() + spoilt * ElementBytes(call.type), 7);
    const auto buffer = device_->Allocate(data.size());
    ASSERT_TRUE(buffer);
    ASSERT_TRUE(device_->CopyIn(*buffer, data.data(), data.size()));
    const auto wrong = device_->CountWrong(call, 1, *buffer);
    ASSERT_TRUE(wrong) << wrong.error().message;
    EXPECT_EQ(*wrong, 3u) << Name(call.type);
  }
}

// The test allocates memory and loads kernels first, because both may wait until the load ends.
TEST_F(Gpu, LoadsRunUntilTheyAreStopped) {
  const auto buffer = device_->Allocate(4'000'000);
  ASSERT_TRUE(buffer);
  ASSERT_TRUE(device_->FillInput({.count = 1'000'000}, 0, *buffer));
  for (const cuda::LoadKind kind : {cuda::LoadKind::kCompute, cuda::LoadKind::kMemory}) {
    auto load = cuda::BackgroundLoad::Prepare({kind, 0.5}, 0);
    ASSERT_TRUE(load) << load.error().message;
    ASSERT_TRUE((*load)->Start());
    // Other work gets through while the load runs.
    EXPECT_TRUE(device_->FillInput({.count = 1'000'000}, 1, *buffer));
    const auto report = (*load)->Stop();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_GT(report->rounds, 0u);
    EXPECT_EQ(report->gigabytes_per_second > 0, kind == cuda::LoadKind::kMemory);
  }
}

}  // namespace
}  // namespace dynamiccl
