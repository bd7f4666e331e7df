// SPDX-License-Identifier: Apache-2.0
// Tests how durations are computed from a profiler's events, for every order of events that NCCL's threads
// may produce.
#include "plugin/times/kernel_times.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "plugin/border/cuda_driver.h"
#include "plugin/profiler/profiler_session.h"
#include "plugin/runtime/process_runtime.h"
#include "plugin/runtime/runtime_instance.h"
#include "plugin/times/timing_window.h"
#include "src/nccl_abi/profiler_types.h"
#include "tests/support/child_process.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {
namespace {

using testing_support::InChildProcess;

const TimedKey kKey{1, Collective::kAllReduce, SizeClass{40}, {Algorithm::kRing, Protocol::kLL, 2}};

class KernelTimesTest : public ::testing::Test {
 protected:
  void* Begin(int channels, KernelClock clock = KernelClock::kStamps) {
    return times_.BeginCollective(kKey, channels, clock);
  }
  void Channel(void* collective, int64_t start, int64_t stop) {
    void* channel = times_.BeginChannel(collective, start);
    times_.StopStamp(channel, stop);
    times_.End(channel);
  }

  TimeStatistics statistics_;
  KernelTimes times_{statistics_};
};

TEST_F(KernelTimesTest, LastsFromTheFirstStartToTheLastStopOfItsChannels) {
  void* collective = Begin(3);
  Channel(collective, 1200, 1900);
  Channel(collective, 1000, 1500);
  EXPECT_FALSE(statistics_.Find(kKey));
  Channel(collective, 1100, 2500);
  ASSERT_TRUE(statistics_.Find(kKey));
  EXPECT_EQ(statistics_.Find(kKey)->least_ns, 1500);
}

// With DYNAMICCL_TIMES=all and 64 channels, the host issues calls far ahead of the device.
TEST(EventPairs, ManyCallsMayBeIssuedBeforeTheFirstOfThemRuns) {
  constexpr uintptr_t kCalls = 500, kChannels = 64;
  const auto pairs = std::make_unique<EventPairs>();
  std::vector<void*> kept;
  for (uintptr_t call = 1; call <= kCalls; ++call)
    kept.push_back(pairs->Join(reinterpret_cast<void*>(call), nullptr));
  for (uintptr_t call = 1; call <= kCalls; ++call) {
    ASSERT_EQ(pairs->OursOf(kept[call - 1]), reinterpret_cast<void*>(call))
        << "it is taken for another event";
    for (uintptr_t channel = 1; channel <= kChannels; ++channel)
      (void)pairs->Join(reinterpret_cast<void*>(kCalls * channel + call), nullptr);
  }
}

// A job that runs for weeks creates and destroys communicators, and its metrics name each of them.
TEST(TimeStatistics, KeepsTheCommunicatorsThatAreInUseAndTheSumsOfTheOthers) {
  TimeStatistics statistics;
  constexpr uint64_t kMade = 5000;
  constexpr uint64_t kLasting = 1;
  TimedKey key = kKey;
  for (uint64_t made = 2; made <= kMade; ++made) {
    for (const uint64_t communicator : {kLasting, made}) {
      key.communicator = communicator;
      statistics.Add(key, static_cast<int64_t>(made));
    }
  }
  EXPECT_LE(statistics.All().size(), TimeStatistics::kCommunicators + 1);
  EXPECT_EQ(statistics.Find(kKey)->count, kMade - 1) << "the oldest communicator is in use";
  key.communicator = kMade;
  EXPECT_EQ(statistics.Find(key)->total_ns, static_cast<int64_t>(kMade));
  uint64_t count = 0;
  for (const auto& [each, times] : statistics.All()) count += times.count;
  EXPECT_EQ(count, 2 * (kMade - 1)) << "a counter never falls";
  key.communicator = 0;
  EXPECT_EQ(statistics.Find(key)->least_ns, 2);
}

TEST_F(KernelTimesTest, TheGuardIsToldHowLongACallTookAndWhenItBegan) {
  const auto report = std::make_shared<TimesReport>([] {});
  report->SetOrders(true, 0);
  void* collective = times_.BeginCollective(kKey, 2, KernelClock::kStamps, {77, report});
  Channel(collective, 1200, 1900);
  EXPECT_TRUE(report->Drain().empty());
  Channel(collective, 1000, 1500);
  EXPECT_EQ(report->Drain(), (std::vector<CallTime>{{77, Collective::kAllReduce, 900}}));
}

// In a large job under DYNAMICCL_TIMES=all, the leader selects only some ranks, because it could not process
// the times of all.
TEST_F(KernelTimesTest, RankThatTheLeaderDidNotSelectTellsNothing) {
  const auto report = std::make_shared<TimesReport>([] {});
  Channel(times_.BeginCollective(kKey, 1, KernelClock::kStamps, {77, report}), 1200, 1900);
  EXPECT_TRUE(report->Drain().empty());
  EXPECT_TRUE(statistics_.Find(kKey));
}

TEST_F(KernelTimesTest, ChannelsMayBeginAfterTheCollectivesOwnEndAndOverlap) {
  void* collective = Begin(2);
  times_.End(collective);  // NCCL ends this event when the collective is enqueued
  void* a = times_.BeginChannel(collective, 100);
  void* b = times_.BeginChannel(collective, 120);
  times_.StopStamp(b, 300);
  times_.StopStamp(a, 250);
  times_.End(a);
  times_.End(b);
  EXPECT_EQ(statistics_.Find(kKey)->total_ns, 200);
}

TEST_F(KernelTimesTest, StatisticsHoldLeastMostAndTotalOfAKey) {
  for (const int64_t duration : {30, 10, 50}) Channel(Begin(1), 1000, 1000 + duration);
  const TimesOfKey times = *statistics_.Find(kKey);
  EXPECT_EQ(times.count, 3u);
  EXPECT_EQ(times.least_ns, 10);
  EXPECT_EQ(times.most_ns, 50);
  EXPECT_EQ(times.total_ns, 90);
  EXPECT_EQ(statistics_.All().size(), 1u);
}

TEST_F(KernelTimesTest, HandlesThatOutliveTheirCellSayNothing) {
  void* old = Begin(1);
  void* channel = times_.BeginChannel(old, 10);
  std::vector<void*> handles;
  for (int i = 0; i < 512; ++i) handles.push_back(Begin(1));
  EXPECT_EQ(times_.BeginChannel(old, 10), nullptr);
  times_.StopStamp(channel, 1'000'000);
  times_.End(channel);
  EXPECT_FALSE(statistics_.Find(kKey));
  for (void* handle : handles) Channel(handle, 100, 105);
  EXPECT_EQ(statistics_.Find(kKey)->most_ns, 5);
  EXPECT_EQ(times_.finished(), 512u);
}

TEST_F(KernelTimesTest, WhatHasNoStampsOrNoNumberOfChannelsIsNoTime) {
  EXPECT_EQ(Begin(2, KernelClock::kNone), nullptr);
  EXPECT_EQ(times_.BeginChannel(nullptr, 1), nullptr);
  times_.End(nullptr);
  Channel(Begin(0), 100, 200);                   // its number of channels is unknown
  Channel(Begin(1), 300, 200);                   // the clock was set back
  times_.End(times_.BeginChannel(Begin(1), 5));  // no stamp was recorded
  EXPECT_FALSE(statistics_.Find(kKey));
}

TEST_F(KernelTimesTest, WithoutStampsTheArrivalOfEventsIsTheTime) {
  void* collective = Begin(1, KernelClock::kArrival);
  void* channel = times_.BeginChannel(collective, 0);
  times_.StopStamp(channel, INT64_MAX);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  times_.End(channel);
  ASSERT_TRUE(statistics_.Find(kKey));
  EXPECT_GE(statistics_.Find(kKey)->least_ns, 2'000'000);
}

TEST_F(KernelTimesTest, ThreadsThatEndChannelsAtOnceLoseNone) {
  std::vector<void*> collectives;
  for (int i = 0; i < 400; ++i) collectives.push_back(Begin(4));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (void* collective : collectives) Channel(collective, 100 + t, 200 + t);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(statistics_.Find(kKey)->count, 400u);
  EXPECT_EQ(statistics_.Find(kKey)->most_ns, 103);
}

TEST_F(KernelTimesTest, DurationReachesTheRecordWhicheverComesFirst) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("kernel_times." + std::to_string(::getpid()));
  auto recorder = Recorder::Open({.path = path});
  ASSERT_TRUE(recorder) << recorder.error().message;
  for (const bool attach_first : {true, false}) {
    IssuedCall call;
    call.call.bytes = attach_first ? 1 : 2;
    const Recorder::Slot slot = (*recorder)->Append(CallRecord(0, call));
    void* collective = Begin(1);
    if (attach_first) times_.Attach(collective, **recorder, slot);
    Channel(collective, 100, 170);
    if (!attach_first) times_.Attach(collective, **recorder, slot);
  }
  (*recorder)->Close();
  const auto trace = ReadTrace(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->sections.at(0).records.size(), 2u);
  for (const TraceRecord& record : trace->sections[0].records) {
    EXPECT_EQ(record.duration_ns, 70u);
    EXPECT_EQ(record.duration_source, static_cast<uint8_t>(DurationSource::kKernelStamps));
  }
}

TEST(ProfilerVersions, FollowTheReleasesThatBroughtThem) {
  ASSERT_EQ(ProfilerVersions().size(), 7u);
  for (int version = 1; version <= 7; ++version) EXPECT_EQ(ProfilerVersions()[version - 1].version, version);
  EXPECT_EQ(ClockOf(2), KernelClock::kNone);
  EXPECT_EQ(ClockOf(3), KernelClock::kArrival);
  EXPECT_EQ(ClockOf(4), KernelClock::kStamps);
  EXPECT_EQ(ClockOf(8), KernelClock::kNone);
  for (const int version : {0, 4, 6, 8}) EXPECT_FALSE(NeedsEveryCall(version)) << version;
  EXPECT_TRUE(NeedsEveryCall(7));
}

TEST(TimingWindow, HoldsAtMostOnePercentOfAnyRun) {
  uint64_t timed = 0;
  for (uint64_t call = 0; call < 100'000; ++call) {
    timed += InTimingWindow(call) ? 1 : 0;
    ASSERT_LE(timed * 100, call + 1);
  }
  EXPECT_EQ(timed, 998u);
}

// With fixed distances between windows, a program with steps of 40 calls would always show the same two of
// them.
TEST(TimingWindow, MeetsEveryPlaceOfAStep) {
  constexpr uint64_t kStep = 40;
  std::set<uint64_t> places;
  for (uint64_t call = 0; call < 40'000; ++call) {
    if (InTimingWindow(call)) places.insert(call % kStep);
  }
  EXPECT_EQ(places.size(), kStep);
}

TEST(TimingWindow, SwitchesNcclsMaskOnForTimedCallsAlone) {
  int mask = 0;
  TimingWindow window;
  window.Enter();
  EXPECT_FALSE(TimingWindow::OpenOnThisThread()) << "no profiler yet";
  window.UseMask(&mask);
  EXPECT_EQ(mask, 0);
  window.Enter();
  EXPECT_EQ(mask, ncclProfileColl | ncclProfileKernelCh);
  EXPECT_TRUE(TimingWindow::OpenOnThisThread());
  std::thread([&] {
    EXPECT_FALSE(TimingWindow::OpenOnThisThread());
    window.Enter();
    window.Leave();
  }).join();
  EXPECT_NE(mask, 0) << "this thread's is still open";
  window.Leave();
  EXPECT_EQ(mask, 0);
  window.Leave();
}

// The object asks the driver for the stream's state. The stand-in answers with `status`.
TEST(StreamCapture, IsAskedOfTheDriverAndAssumedWhereItDoesNotSay) {
  InChildProcess([] {
    void* driver = ::dlopen(DYNAMICCL_TEST_CUDA_DRIVER, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(driver, nullptr) << ::dlerror();
    auto* status = static_cast<int*>(::dlsym(driver, "captureStatus"));
    auto* result = static_cast<int*>(::dlsym(driver, "captureResult"));
    for (const auto& [says, returns] : {std::pair{1, 0}, {2, 0}, {0, 700}}) {
      *status = says;
      *result = returns;
      EXPECT_TRUE(StreamIsCapturing(nullptr));
    }
    *status = *result = 0;
    EXPECT_FALSE(StreamIsCapturing(nullptr));
  });
}

TEST(ProfilerSession, TimesNothingOutsideOfWindowsAndNothingCaptured) {
  InChildProcess([] {
    ::setenv("DYNAMICCL_TIMES", "1", 1);
    ::setenv("DYNAMICCL_RULES", "/dev/null", 1);
    int mask = 0;
    const auto session = ProfilerSession::Begin({6, 17, 4, &mask});
    ASSERT_NE(session, nullptr);
    EXPECT_EQ(mask, 0);
    const ProfiledCollective event{0, Collective::kAllReduce, 100, DataType::kFloat32, kKey.config};
    EXPECT_EQ(session->BeginCollective(event), nullptr);
    TimingWindow& window = RuntimeInstance::Get()->times()->window();
    window.Enter();
    session->GroupBegins(true);
    EXPECT_EQ(session->BeginCollective(event), nullptr);
    session->GroupBegins(false);
    void* collective = session->BeginCollective(event);
    ASSERT_NE(collective, nullptr);
    window.Leave();
    for (int channel = 0; channel < 2; ++channel) {
      void* handle = session->BeginChannel(collective, 1000);
      ProfilerSession::StopStamp(handle, 1700);
      ProfilerSession::End(handle);
    }
    const auto times = RuntimeInstance::Get()->times()->statistics().All();
    ASSERT_EQ(times.size(), 1u);
    EXPECT_EQ(times.begin()->first, (TimedKey{17, Collective::kAllReduce, SizeClassOf(400), kKey.config}));
    EXPECT_EQ(times.begin()->second.least_ns, 700);
    EXPECT_NE(RuntimeInstance::Get()->times()->Summary().find("timed 1 of 0 calls"), std::string::npos);
  });
}

// If only some calls are profiled, NVIDIA's library gives the times of other calls.
TEST(ProfilerSession, OfVersion7IsOpenForEveryCallOrIsNone) {
  for (const char* times : {"1", "all"}) {
    InChildProcess([times] {
      ::setenv("DYNAMICCL_TIMES", times, 1);
      ::setenv("DYNAMICCL_RULES", "/dev/null", 1);
      ::setenv("DYNAMICCL_LOG", "none", 1);
      int mask = 0;
      const bool all = std::string(times) == "all";
      EXPECT_EQ(ProfilerSession::Begin({7, 17, 4, &mask}) != nullptr, all);
      TimingWindow& window = RuntimeInstance::Get()->times()->window();
      EXPECT_EQ(window.has_mask(), all);
      EXPECT_EQ(mask != 0, all) << "before the first window";
      window.Enter();
      window.Leave();
      EXPECT_EQ(mask != 0, all) << "after it";
    });
  }
}

TEST(ProfilerSession, IsNoneWithoutTheSettingOrAClock) {
  InChildProcess([] {
    int mask = 5;
    EXPECT_EQ(ProfilerSession::Begin({7, 17, 4, &mask}), nullptr);
    EXPECT_EQ(mask, 5);
    ProfilerSession::StopStamp(nullptr, 1);
    ProfilerSession::End(nullptr);
  });
  InChildProcess([] {
    ::setenv("DYNAMICCL_TIMES", "1", 1);
    ::setenv("DYNAMICCL_RULES", "/dev/null", 1);
    ::setenv("DYNAMICCL_LOG", "none", 1);
    int mask = 5;
    EXPECT_EQ(ProfilerSession::Begin({2, 0, 0, &mask}), nullptr);
    EXPECT_EQ(mask, 5);
  });
}

}  // namespace
}  // namespace dynamiccl
