// SPDX-License-Identifier: Apache-2.0
// The events that profiler plugins of every version receive: order, parents, counts and times. Each test runs
// in a process of its own, because a process has only one profiler.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "tests/src/hostccl/scripted_profiler.h"
#include "tests/support/child_process.h"
#include "tests/support/spawn_ranks.h"

namespace {

struct Recorded {
  ScriptedEvent event;
  void* context = nullptr;
  std::thread::id started_on;
  int starts = 0;
  int stops = 0;
  std::vector<int> states;
  uint64_t stop_timer = 0;
  int start_order = 0;
  int stop_order = 0;
};

// Records everything that the plugin receives.
struct Recorder {
  std::mutex mutex;
  int wanted_mask = 0;
  ncclResult_t init_result = ncclSuccess;
  int* mask = nullptr;
  int inits = 0;
  int finalizes = 0;
  int order = 0;
  std::map<int, uint64_t> ids;  // Communicator ids by rank.
  std::vector<std::unique_ptr<Recorded>> events;
  std::vector<std::unique_ptr<int>> contexts;
};
Recorder g_recorder;

}  // namespace

extern "C" {
#define EXPORTED __attribute__((visibility("default")))

EXPORTED ncclResult_t scriptedInit(void** context, uint64_t id, int rank, int* mask) {
  const std::lock_guard lock(g_recorder.mutex);
  ++g_recorder.inits;
  g_recorder.ids[rank] = id;
  if (g_recorder.init_result != ncclSuccess) return g_recorder.init_result;
  g_recorder.mask = mask;
  std::atomic_ref(*mask).store(g_recorder.wanted_mask);
  g_recorder.contexts.push_back(std::make_unique<int>(rank));
  *context = g_recorder.contexts.back().get();
  return ncclSuccess;
}

EXPORTED ncclResult_t scriptedStart(void* context, void** handle, const ScriptedEvent* event) {
  const std::lock_guard lock(g_recorder.mutex);
  auto recorded = std::make_unique<Recorded>();
  recorded->event = *event;
  recorded->context = context;
  recorded->started_on = std::this_thread::get_id();
  recorded->start_order = ++g_recorder.order;
  *handle = recorded.get();
  g_recorder.events.push_back(std::move(recorded));
  return ncclSuccess;
}

EXPORTED ncclResult_t scriptedStop(void* handle) {
  const std::lock_guard lock(g_recorder.mutex);
  auto* recorded = static_cast<Recorded*>(handle);
  ++recorded->stops;
  recorded->stop_order = ++g_recorder.order;
  return ncclSuccess;
}

EXPORTED ncclResult_t scriptedRecord(void* handle, int state, uint64_t timer) {
  const std::lock_guard lock(g_recorder.mutex);
  auto* recorded = static_cast<Recorded*>(handle);
  EXPECT_EQ(recorded->stops, 0) << "a state after the stop";
  recorded->states.push_back(state);
  recorded->stop_timer = timer;
  return ncclInternalError;  // The program must not see this error.
}

EXPORTED ncclResult_t scriptedFinalize(void* context) {
  const std::lock_guard lock(g_recorder.mutex);
  ++g_recorder.finalizes;
  for (const auto& recorded : g_recorder.events) {
    if (recorded->context != context) continue;
    EXPECT_EQ(recorded->stops, 1) << "open event at finalize";
  }
  return ncclSuccess;
}
}

namespace dynamiccl::testing {
namespace {

using testing_support::InChildProcess;
using Floats = std::vector<float>;

constexpr int kAll = 0xffff;
constexpr size_t kCount = 40'000;

void UsePlugin(int version, int mask) {
  const std::string path =
      fmt::format("{}/libnccl-profiler-scripted_v{}.so", DYNAMICCL_TEST_PLUGIN_FOLDER, version);
  ::setenv("NCCL_PROFILER_PLUGIN", path.c_str(), 1);
  ::setenv("NCCL_TUNER_PLUGIN", "none", 1);
  ::setenv("NCCL_ALGO", "Ring", 1);
  ::setenv("NCCL_PROTO", "Simple", 1);
  g_recorder.wanted_mask = mask;
}

void Reduce(RankContext& rank, Floats& data) {
  EXPECT_EQ(ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, rank.comm, rank.stream),
            ncclSuccess);
}

void OneAllReduce(RankContext& rank) {
  Floats data(kCount, 1);
  Reduce(rank, data);
  EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
  EXPECT_EQ(data, Floats(kCount, 2));
}

// Returns the events of kind `type` in the order of their starts. With `rank` >= 0, only that rank's events.
std::vector<const Recorded*> Of(uint64_t type, int rank = -1) {
  std::vector<const Recorded*> found;
  for (const auto& recorded : g_recorder.events) {
    if (recorded->event.type == type && (rank < 0 || recorded->event.rank == rank))
      found.push_back(recorded.get());
  }
  return found;
}

bool Encloses(const Recorded& outer, const Recorded& inner) {
  return outer.start_order < inner.start_order && inner.stop_order < outer.stop_order;
}

class ProfilerVersion : public ::testing::TestWithParam<int> {};

// Returns the lowest plugin version that has this kind of event.
int Since(uint64_t type) {
  if (type == ncclProfileKernelCh) return 3;
  if (type == ncclProfileKernelPhase) return 7;
  const bool api = type == ncclProfileGroupApi || type == ncclProfileCollApi || type == ncclProfileP2pApi ||
                   type == ncclProfileKernelLaunch;
  return api ? 5 : 1;
}

TEST_P(ProfilerVersion, OneAllReduceGivesEveryEventOfTheVersionOnce) {
  InChildProcess([] {
    UsePlugin(GetParam(), kAll);
    ASSERT_EQ(SpawnRanks(2, OneAllReduce), ncclSuccess);
    EXPECT_EQ(g_recorder.inits, 2);
    EXPECT_EQ(g_recorder.finalizes, 2);
    const int channels = Of(ncclProfileColl).front()->event.channels;
    EXPECT_GE(channels, 1);
    const std::map<uint64_t, int> expected{{ncclProfileGroupApi, 1},
                                           {ncclProfileCollApi, 1},
                                           {ncclProfileKernelLaunch, 1},
                                           {ncclProfileGroup, 1},
                                           {ncclProfileColl, 1},
                                           {ncclProfileKernelCh, channels},
                                           {ncclProfileKernelPhase, 3 * channels}};
    size_t known = 0;
    for (const auto& [type, count] : expected) {
      const int wanted = GetParam() >= Since(type) ? count : 0;
      for (int rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(Of(type, rank).size(), static_cast<size_t>(wanted)) << "type " << type << " rank " << rank;
      }
      known += 2 * static_cast<size_t>(wanted);
    }
    EXPECT_EQ(g_recorder.events.size(), known) << "no other events";
    for (const auto& recorded : g_recorder.events) EXPECT_EQ(recorded->stops, 1);
  });
}

TEST_P(ProfilerVersion, TheCollEventSaysWhatWasChosen) {
  InChildProcess([] {
    UsePlugin(GetParam(), ncclProfileColl);
    ASSERT_EQ(SpawnRanks(2, OneAllReduce), ncclSuccess);
    const ScriptedEvent& coll = Of(ncclProfileColl, 1).front()->event;
    EXPECT_EQ(coll.count, kCount);
    EXPECT_EQ(coll.sequence, 0u);
    if (GetParam() == 1) {
      EXPECT_EQ(coll.function_number, ncclFuncAllReduce);
      EXPECT_EQ(coll.algorithm_number, 1);
    } else {
      EXPECT_STREQ(coll.function, "AllReduce");
      EXPECT_STREQ(coll.type_name, "ncclFloat32");
      EXPECT_STREQ(coll.algorithm, "RING");
      EXPECT_STREQ(coll.protocol, "SIMPLE");
    }
    const Recorded* const group = Of(ncclProfileGroup, 1).front();
    EXPECT_EQ(GetParam() >= 5 ? coll.parent_group : coll.parent, group);
    EXPECT_TRUE(Encloses(*group, *Of(ncclProfileColl, 1).front()));
  });
}

TEST_P(ProfilerVersion, SendsAndReceivesAreP2pEvents) {
  InChildProcess([] {
    UsePlugin(GetParam(), kAll);
    const auto exchange = [](RankContext& rank) {
      Floats sent(kCount, 3);
      Floats received(kCount);
      ncclGroupStart();
      ncclSend(sent.data(), kCount, ncclFloat, 1 - rank.rank, rank.comm, rank.stream);
      ncclRecv(received.data(), kCount, ncclFloat, 1 - rank.rank, rank.comm, rank.stream);
      EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
      EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
      EXPECT_EQ(received, sent);
    };
    ASSERT_EQ(SpawnRanks(2, exchange), ncclSuccess);
    const auto transfers = Of(ncclProfileP2p, 0);
    ASSERT_EQ(transfers.size(), 2u);
    for (const Recorded* transfer : transfers) {
      EXPECT_EQ(transfer->event.peer, 1);
      EXPECT_EQ(transfer->event.count, kCount);
      if (GetParam() == 1) continue;
      EXPECT_STREQ(transfer->event.type_name, "ncclFloat32");
    }
    EXPECT_EQ(Of(ncclProfileGroup, 0).size(), 1u);
    EXPECT_EQ(Of(ncclProfileP2pApi, 0).size(), GetParam() >= 5 ? 2u : 0u);
    const auto kernels = Of(ncclProfileKernelCh, 0);
    ASSERT_EQ(kernels.size(), GetParam() >= 3 ? 2u : 0u);
    for (const Recorded* kernel : kernels) {
      EXPECT_TRUE(kernel->event.parent == transfers[0] || kernel->event.parent == transfers[1]);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, ProfilerVersion, ::testing::Values(1, 2, 3, 4, 5, 6, 7),
                         [](const auto& version) { return fmt::format("v{}", version.param); });

TEST(Profiler, ParentsAndThreadsFollowTheHierarchy) {
  InChildProcess([] {
    UsePlugin(7, kAll);
    ASSERT_EQ(SpawnRanks(2,
                         [](RankContext& rank) {
                           Floats first(kCount, 1);
                           Floats second(kCount, 1);
                           ncclGroupStart();
                           Reduce(rank, first);
                           Reduce(rank, second);
                           EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
                           EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
                         }),
              ncclSuccess);
    const auto group_apis = Of(ncclProfileGroupApi, 0);
    const auto apis = Of(ncclProfileCollApi, 0);
    const auto colls = Of(ncclProfileColl, 0);
    const auto groups = Of(ncclProfileGroup, 0);
    ASSERT_EQ(group_apis.size(), 1u);
    ASSERT_EQ(apis.size(), 2u);
    ASSERT_EQ(colls.size(), 2u);
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(group_apis[0]->event.depth, 2) << "a call inside one ncclGroupStart";
    EXPECT_EQ(group_apis[0]->states,
              (std::vector<int>{ncclProfilerGroupStartApiStop, ncclProfilerGroupEndApiStart}));
    EXPECT_EQ(Of(ncclProfileKernelLaunch, 0)[0]->event.parent, group_apis[0]);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(apis[i]->event.parent, group_apis[0]);
      EXPECT_TRUE(colls[i]->event.parent == apis[0] || colls[i]->event.parent == apis[1]);
      EXPECT_EQ(colls[i]->event.parent_group, groups[0]);
      EXPECT_EQ(colls[i]->event.sequence, i);
      EXPECT_TRUE(Encloses(*group_apis[0], *colls[i]));
      EXPECT_EQ(colls[i]->started_on, group_apis[0]->started_on) << "on the caller";
    }
    EXPECT_NE(colls[0]->event.parent, colls[1]->event.parent);
  });
}

TEST(Profiler, KernelChannelsCarryTheTimesOfTheirLanes) {
  InChildProcess([] {
    UsePlugin(7, kAll);
    const auto begin = static_cast<uint64_t>(MonotonicNanoseconds());
    ASSERT_EQ(SpawnRanks(2, OneAllReduce), ncclSuccess);
    const auto end = static_cast<uint64_t>(MonotonicNanoseconds());
    for (int rank = 0; rank < 2; ++rank) {
      const Recorded* const coll = Of(ncclProfileColl, rank).front();
      const auto kernels = Of(ncclProfileKernelCh, rank);
      ASSERT_EQ(kernels.size(), static_cast<size_t>(coll->event.channels));
      for (size_t channel = 0; channel < kernels.size(); ++channel) {
        const Recorded& kernel = *kernels[channel];
        EXPECT_EQ(kernel.event.parent, coll);
        EXPECT_EQ(kernel.event.channel, static_cast<int>(channel));
        EXPECT_EQ(kernel.states, std::vector<int>{ncclProfilerKernelChStop});
        EXPECT_LE(begin, kernel.event.timer);
        EXPECT_LT(kernel.event.timer, kernel.stop_timer);
        EXPECT_LE(kernel.stop_timer, end);
        EXPECT_LT(coll->start_order, kernel.start_order) << "a parent before its child";
      }
    }
  });
}

TEST(Profiler, PhasesOfAKernelFollowEachOther) {
  InChildProcess([] {
    UsePlugin(7, ncclProfileKernelCh | ncclProfileKernelPhase);
    ASSERT_EQ(SpawnRanks(2, OneAllReduce), ncclSuccess);
    std::map<const void*, std::vector<const Recorded*>> by_kernel;
    for (const Recorded* phase : Of(ncclProfileKernelPhase)) by_kernel[phase->event.parent].push_back(phase);
    EXPECT_EQ(by_kernel.size(), Of(ncclProfileKernelCh).size());
    for (const auto& [parent, phases] : by_kernel) {
      const auto& kernel = *static_cast<const Recorded*>(parent);
      ASSERT_EQ(phases.size(), 3u);
      EXPECT_EQ(phases[0]->event.timer, kernel.event.timer);
      EXPECT_EQ(phases[2]->stop_timer, kernel.stop_timer);
      for (int phase = 0; phase < 3; ++phase) {
        EXPECT_EQ(phases[static_cast<size_t>(phase)]->event.phase, phase);
        EXPECT_EQ(phases[static_cast<size_t>(phase)]->states, std::vector<int>{ncclProfilerKernelPhaseStop});
      }
      EXPECT_EQ(phases[0]->stop_timer, phases[1]->event.timer);
      EXPECT_EQ(phases[1]->stop_timer, phases[2]->event.timer);
    }
  });
}

TEST(Profiler, TheMaskMayChangeWhileTheProgramRuns) {
  InChildProcess([] {
    UsePlugin(7, 0);
    ASSERT_EQ(SpawnRanks(1, [](RankContext&) {}), ncclSuccess);
    EXPECT_TRUE(g_recorder.events.empty());
    std::atomic<int> arrived{0};
    ASSERT_EQ(SpawnRanks(2,
                         [&](RankContext& rank) {
                           OneAllReduce(rank);
                           arrived.fetch_add(1);
                           while (arrived.load() < 2) std::this_thread::yield();
                           std::atomic_ref(*g_recorder.mask).store(ncclProfileColl);
                           OneAllReduce(rank);
                         }),
              ncclSuccess);
    ASSERT_EQ(Of(ncclProfileColl).size(), 2u);
    for (const Recorded* coll : Of(ncclProfileColl)) EXPECT_EQ(coll->event.sequence, 1u) << "all are counted";
    EXPECT_TRUE(Of(ncclProfileKernelCh).empty());
  });
}

TEST(Profiler, EveryCommunicatorHasItsOwnContextAndNumbers) {
  InChildProcess([] {
    UsePlugin(7, ncclProfileColl);
    for (int round = 0; round < 2; ++round) ASSERT_EQ(SpawnRanks(2, OneAllReduce), ncclSuccess);
    EXPECT_EQ(g_recorder.inits, 4);
    EXPECT_EQ(g_recorder.finalizes, 4);
    EXPECT_EQ(g_recorder.ids[0], g_recorder.ids[1]) << "equal on all ranks";
    EXPECT_NE(g_recorder.ids[0], 0u);
    for (const Recorded* coll : Of(ncclProfileColl)) EXPECT_EQ(coll->event.sequence, 0u);
  });
}

TEST(Profiler, AnErrorOfInitOnlyTurnsItOff) {
  InChildProcess([] {
    UsePlugin(7, kAll);
    g_recorder.init_result = ncclInternalError;
    ASSERT_EQ(SpawnRanks(2, OneAllReduce), ncclSuccess);
    EXPECT_EQ(g_recorder.inits, 2);
    EXPECT_EQ(g_recorder.finalizes, 0);
    EXPECT_TRUE(g_recorder.events.empty());
  });
}

TEST(Profiler, ALoneRanksCallsAreApiEventsOnly) {
  InChildProcess([] {
    UsePlugin(7, kAll);
    ASSERT_EQ(SpawnRanks(1,
                         [](RankContext& rank) {
                           Floats data(kCount, 2);
                           Reduce(rank, data);
                           EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
                         }),
              ncclSuccess);
    EXPECT_EQ(Of(ncclProfileCollApi).size(), 1u);
    EXPECT_EQ(g_recorder.events.size(), 2u) << "and the group's";
  });
}

}  // namespace
}  // namespace dynamiccl::testing
