// SPDX-License-Identifier: Apache-2.0
// Tests stamps of steps with a stand-in for the CUDA driver. The test decides when its events complete.
#include "plugin/times/step_stamps.h"

#include <gtest/gtest.h>

#include "plugin/interpose/events_of_process.h"
#include "tests/plugin/fake_cuda_device.h"
#include "tests/support/child_process.h"

namespace dynamiccl {
namespace {

using testing_support::InChildProcess;
struct Device : testing_support::FakeCudaDevice {
  Device() : FakeCudaDevice(DYNAMICCL_TEST_CUDA_DRIVER) {}
};

constexpr int64_t kMillisecond = 1'000'000;

CallTime StampOf(uint64_t call, int64_t begun_ns) {
  return {call, Collective::kAllGather, 0, begun_ns};
}

class Steps {
 public:
  bool Begin(uint64_t call) { return stamps_->Stamp(call, Collective::kAllGather, nullptr, report_); }
  void Look() { stamps_->ReportReached(report_); }
  std::vector<CallTime> Reported() { return report_.Drain(); }
  void End() { stamps_.reset(); }

 private:
  TimesReport report_{[] {}};
  std::unique_ptr<StepStamps> stamps_ = std::make_unique<StepStamps>(EventsOfProcess());
};

TEST(StepStamps, AreReportedWithTheDevicesTimesOnceTheDeviceHasReachedThem) {
  InChildProcess([] {
    Device device;
    Steps steps;
    EXPECT_TRUE(steps.Begin(10));
    EXPECT_TRUE(steps.Begin(10)) << "another call of the same group";
    EXPECT_TRUE(steps.Begin(20));
    EXPECT_TRUE(steps.Reported().empty()) << "the device is behind";
    device["reached"] = 2;
    EXPECT_TRUE(steps.Begin(30));
    EXPECT_EQ(steps.Reported(), (std::vector{StampOf(10, 0), StampOf(20, 2 * kMillisecond)}));
    device["reached"] = 3;
    steps.Look();  // at a call inside the step
    EXPECT_EQ(steps.Reported(), std::vector{StampOf(30, 5 * kMillisecond)});
    EXPECT_TRUE(steps.Begin(40));
    EXPECT_TRUE(steps.Reported().empty());
    steps.End();
    EXPECT_EQ(device["liveEvents"], 0);
    EXPECT_EQ(device["spoiled"], 0) << "another thread may be capturing";
  });
}

TEST(StepStamps, AreLeftOutWhileTheHostIsFarAheadAndComeBack) {
  InChildProcess([] {
    Device device;
    Steps steps;
    for (uint64_t step = 0; step < 16; ++step) EXPECT_TRUE(steps.Begin(step));
    EXPECT_FALSE(steps.Begin(16));
    device["reached"] = 16;
    EXPECT_TRUE(steps.Begin(17));
    EXPECT_EQ(steps.Reported().size(), 16u);
    device["reached"] = 17;
    EXPECT_TRUE(steps.Begin(18));
    EXPECT_EQ(steps.Reported(), std::vector{StampOf(17, (17 * 18 / 2 - 1) * kMillisecond)});
    EXPECT_LE(device["liveEvents"], 18) << "events are used again";
  });
}

TEST(StepStamps, EndWithTheFirstFailureOfTheDriver) {
  InChildProcess([] {
    Device device;
    Steps steps;
    EXPECT_TRUE(steps.Begin(1));
    device["failing"] = 709;  // CUDA_ERROR_CONTEXT_IS_DESTROYED
    EXPECT_FALSE(steps.Begin(2));
    device["failing"] = 0;
    EXPECT_FALSE(steps.Begin(3));
    EXPECT_TRUE(steps.Reported().empty());
  });
}

TEST(StepStamps, WithoutADriverThereAreNone) {
  TimesReport report([] {});
  EXPECT_FALSE(StepStamps().Stamp(1, Collective::kAllReduce, nullptr, report));
}

}  // namespace
}  // namespace dynamiccl
