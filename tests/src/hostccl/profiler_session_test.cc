// SPDX-License-Identifier: Apache-2.0
// Calls to a profiler plugin while another thread ends the session, as ncclCommAbort does.
#include "src/hostccl/plugin_host/profiler_session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace dynamiccl::hostccl {
namespace {

// The plugin's context. It is also the handle of each event.
struct Plugin {
  ProfilerSession* session = nullptr;
  std::thread ends;
  std::atomic<int> starts{0};
  std::atomic<int> stops{0};
  std::atomic<int> finalizes{0};
};

// Starts a thread that finalizes the session while the plugin is still in this function.
ncclResult_t StartWhileAnotherThreadFinalizes(void* context, void** handle, ncclProfilerEventDescr_v7_t*) {
  auto& plugin = *static_cast<Plugin*>(context);
  ++plugin.starts;
  std::atomic<bool> begun{false};
  plugin.ends = std::thread([&] {
    begun = true;
    plugin.session->Finalize();
  });
  while (!begun) std::this_thread::yield();
  for (int turn = 0; turn < 1000 && plugin.finalizes == 0; ++turn) std::this_thread::yield();
  EXPECT_EQ(plugin.finalizes, 0) << "the plugin begins an event";
  *handle = &plugin;
  return ncclSuccess;
}

TEST(ProfilerSession, FinalizeWaitsForTheThreadThatBeginsAnEventAndLaterEventsGoWithoutThePlugin) {
  auto functions = std::make_shared<ProfilerInterface>();
  functions->functions.startEvent = StartWhileAnotherThreadFinalizes;
  functions->functions.stopEvent = [](void* handle) {
    ++static_cast<Plugin*>(handle)->stops;
    return ncclSuccess;
  };
  functions->functions.finalize = [](void* context) {
    ++static_cast<Plugin*>(context)->finalizes;
    return ncclSuccess;
  };
  Plugin plugin;
  ProfilerSession session(functions, &plugin, 0);
  plugin.session = &session;
  void* const open = session.Start({});
  plugin.ends.join();
  EXPECT_EQ(open, &plugin);
  EXPECT_EQ(plugin.finalizes, 1);
  session.Stop(open);
  EXPECT_EQ(plugin.stops, 0) << "the plugin has ended";
  EXPECT_EQ(session.Start({}), nullptr);
  EXPECT_EQ(plugin.starts, 1);
}

}  // namespace
}  // namespace dynamiccl::hostccl
