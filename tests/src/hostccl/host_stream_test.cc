// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "src/nccl_abi/host_stream.h"

namespace dynamiccl {
namespace {

// A piece of stream work that appends its index to a list.
struct Step {
  std::vector<int>* order;
  int index;
  static void Run(void* data) {
    const auto* const step = static_cast<Step*>(data);
    step->order->push_back(step->index);
  }
};

TEST(HostStream, RunsWorkInOrder) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(hostcclStreamCreate(&stream), ncclSuccess);
  std::vector<int> order;
  std::vector<Step> steps;
  for (int i = 0; i < 100; ++i) steps.push_back({&order, i});
  for (Step& step : steps) EXPECT_EQ(hostcclLaunchHostFunc(stream, Step::Run, &step), ncclSuccess);
  EXPECT_EQ(hostcclStreamSynchronize(stream), ncclSuccess);
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_EQ(hostcclStreamDestroy(stream), ncclSuccess);
}

TEST(HostStream, AnEventOrdersTwoStreams) {
  cudaStream_t a = nullptr;
  cudaStream_t b = nullptr;
  hostcclEvent_t event = nullptr;
  hostcclStreamCreate(&a);
  hostcclStreamCreate(&b);
  ASSERT_EQ(hostcclEventCreate(&event), ncclSuccess);
  EXPECT_EQ(hostcclEventQuery(event), ncclSuccess) << "an event never recorded is complete";
  std::atomic<bool> release{false};
  std::vector<int> order;
  Step first{&order, 1};
  Step second{&order, 2};
  const auto wait = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); };
  hostcclLaunchHostFunc(a, wait, &release);
  hostcclLaunchHostFunc(a, Step::Run, &first);
  EXPECT_EQ(hostcclEventRecord(event, a), ncclSuccess);
  EXPECT_EQ(hostcclStreamWaitEvent(b, event), ncclSuccess);
  hostcclLaunchHostFunc(b, Step::Run, &second);
  int64_t when = 0;
  EXPECT_EQ(hostcclEventQuery(event), ncclInProgress);
  EXPECT_EQ(hostcclEventTime(event, &when), ncclInProgress);
  EXPECT_EQ(hostcclStreamQuery(b), ncclInProgress);
  release = true;
  release.notify_all();
  EXPECT_EQ(hostcclStreamSynchronize(b), ncclSuccess);
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_EQ(hostcclEventSynchronize(event), ncclSuccess);
  EXPECT_EQ(hostcclEventTime(event, &when), ncclSuccess);
  EXPECT_GT(when, 0);
  EXPECT_EQ(hostcclEventDestroy(event), ncclSuccess);
  EXPECT_EQ(hostcclEventQuery(event), ncclInvalidArgument);
  hostcclStreamDestroy(a);
  hostcclStreamDestroy(b);
}

TEST(HostStream, RefusesUnknownHandles) {
  int object = 0;
  const auto stream = reinterpret_cast<cudaStream_t>(&object);
  EXPECT_EQ(hostcclStreamSynchronize(stream), ncclInvalidArgument);
  EXPECT_EQ(hostcclStreamDestroy(stream), ncclInvalidArgument);
  EXPECT_EQ(hostcclStreamDestroy(nullptr), ncclInvalidArgument);
  EXPECT_EQ(hostcclStreamCreate(nullptr), ncclInvalidArgument);
  EXPECT_EQ(hostcclEventRecord(nullptr, nullptr), ncclInvalidArgument);
  EXPECT_EQ(hostcclStreamSynchronize(nullptr), ncclSuccess) << "the null stream is a stream of its own";
}

TEST(HostStream, DestroyWaitsForTheWork) {
  cudaStream_t stream = nullptr;
  hostcclStreamCreate(&stream);
  std::vector<int> order;
  Step step{&order, 1};
  hostcclLaunchHostFunc(stream, Step::Run, &step);
  EXPECT_EQ(hostcclStreamDestroy(stream), ncclSuccess);
  EXPECT_EQ(order.size(), 1u);
}

}  // namespace
}  // namespace dynamiccl
