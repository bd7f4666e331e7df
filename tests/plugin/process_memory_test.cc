// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/process_memory.h"

#include <gtest/gtest.h>

#include "tests/plugin/fake_cuda_device.h"
#include "tests/support/child_process.h"

namespace dynamiccl {
namespace {

using testing_support::FakeCudaDevice;
using testing_support::InChildProcess;

constexpr int64_t kSecond = 1'000'000'000;

int Number(MemoryPressure pressure) {
  return static_cast<int>(pressure);
}

TEST(ProcessMemory, SamplesTheDeviceOnceASecondAndSpoilsNoCapture) {
  InChildProcess([] {
    FakeCudaDevice device(DYNAMICCL_TEST_CUDA_DRIVER);
    ProcessMemory memory;
    EXPECT_EQ(memory.pressure(), -1);
    device["freeMiB"] = 512;
    const auto first = memory.SampleIfDue(5 * kSecond);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->free_bytes, uint64_t{512} << 20);
    EXPECT_EQ(first->total_bytes, uint64_t{1024} << 20);
    EXPECT_EQ(memory.pressure(), Number(MemoryPressure::kLow));
    device["freeMiB"] = 40;
    EXPECT_FALSE(memory.SampleIfDue(6 * kSecond - 1));
    EXPECT_EQ(memory.pressure(), Number(MemoryPressure::kLow));
    EXPECT_TRUE(memory.SampleIfDue(6 * kSecond));
    EXPECT_EQ(memory.pressure(), Number(MemoryPressure::kHigh));
    EXPECT_EQ(device["spoiled"], 0) << "another thread may be capturing";
  });
}

TEST(ProcessMemory, TakesTheProgramsWordAndSamplesNoMore) {
  InChildProcess([] {
    FakeCudaDevice device(DYNAMICCL_TEST_CUDA_DRIVER);
    ProcessMemory memory;
    device["freeMiB"] = 40;
    memory.Report({500, 1000});
    EXPECT_FALSE(memory.SampleIfDue(5 * kSecond));
    EXPECT_EQ(memory.pressure(), Number(MemoryPressure::kLow));
    memory.Report({50, 1000});
    EXPECT_EQ(memory.pressure(), Number(MemoryPressure::kHigh));
  });
}

// The driver returns an error to a thread without a context.
TEST(ProcessMemory, SamplesTheHostWhereNoDeviceAnswers) {
  InChildProcess([] {
    FakeCudaDevice device(DYNAMICCL_TEST_CUDA_DRIVER);
    ProcessMemory memory;
    device["failing"] = 201;  // CUDA_ERROR_INVALID_CONTEXT
    const auto sample = memory.SampleIfDue(0);
    ASSERT_TRUE(sample);
    EXPECT_EQ(sample->total_bytes, HostMemory().total_bytes);
  });
}

}  // namespace
}  // namespace dynamiccl
