// SPDX-License-Identifier: Apache-2.0
// The calls of the profiler plugin for one communicator: init, events, finalize.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "src/collective/collective.h"
#include "src/collective/communicator_info.h"
#include "src/hostccl/plugin_host/profiler_plugin.h"

namespace dynamiccl::hostccl {

// The communicator and its groups share the session. Results of the plugin's event functions are ignored: a
// profiler never makes a collective fail. Any thread may call the functions, unless a function's comment says
// otherwise.
class ProfilerSession {
 public:
  // Calls the plugin's init. Returns null if there is no plugin or init fails; a failure is logged. `name`
  // may be null.
  static std::shared_ptr<ProfilerSession> Open(const CommunicatorInfo& info, const char* name);
  ProfilerSession(std::shared_ptr<const ProfilerInterface> profiler, void* context, int rank)
      : profiler_(std::move(profiler)), context_(context), rank_(rank) {}
  ~ProfilerSession() { Finalize(); }
  ProfilerSession(const ProfilerSession&) = delete;
  ProfilerSession& operator=(const ProfilerSession&) = delete;

  // Returns the kinds of events that the plugin wants now. There is one mask for the process, and the plugin
  // may change it at any time.
  static int mask();

  // Starts an event. The returned handle may be null; Stop and Record then do nothing.
  void* Start(ncclProfilerEventDescr_v7_t event) const;
  void Stop(void* handle) const;
  void Record(void* handle, ncclProfilerEventState_t state) const;
  // Records a change of an event's state with a time in nanoseconds.
  void RecordTime(void* handle, ncclProfilerEventState_t state, int64_t ns) const;

  // Returns how many collectives of this kind came before, and counts one more. Only the thread that ends
  // groups calls it.
  uint64_t NextSequence(Collective collective) { return sequence_[static_cast<size_t>(collective)]++; }

  // Calls the plugin's finalize, once. This may close the library. It waits until no thread is in one of the
  // functions above, which have no effect afterwards. If an abort on another thread ends the communicator,
  // events that are still open are never stopped.
  void Finalize();

 private:
  // The plugin's event functions run with a shared lock, its finalize runs with an exclusive one.
  mutable std::shared_mutex mutex_;
  std::shared_ptr<const ProfilerInterface> profiler_;
  void* context_;
  int rank_;
  std::array<uint64_t, kCollectives> sequence_{};
};

}  // namespace dynamiccl::hostccl
