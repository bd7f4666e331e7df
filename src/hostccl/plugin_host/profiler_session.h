// SPDX-License-Identifier: Apache-2.0
// One communicator's profiler: init, events, finalize. What the plugin returns from events is ignored: a
// profiler never fails a collective.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "src/collective/collective.h"
#include "src/collective/communicator_info.h"
#include "src/hostccl/plugin_host/profiler_plugin.h"

namespace dynamiccl::hostccl {

class ProfilerSession {
 public:
  // Null without a plugin, and for a communicator whose init the plugin refused (logged). `name` may be null.
  static std::shared_ptr<ProfilerSession> Open(const CommunicatorInfo& info, const char* name);
  ProfilerSession(std::shared_ptr<const ProfilerInterface> profiler, void* context, int rank)
      : profiler_(std::move(profiler)), context_(context), rank_(rank) {}
  ~ProfilerSession() { Finalize(); }
  ProfilerSession(const ProfilerSession&) = delete;
  ProfilerSession& operator=(const ProfilerSession&) = delete;

  // Kinds of events that are wanted now: one number for the process, which the plugin may change at any time.
  static int mask();

  // Any thread. The handle may be null; Stop and Record ignore that.
  void* Start(ncclProfilerEventDescr_v7_t event) const;
  void Stop(void* handle) const;
  void Record(void* handle, ncclProfilerEventState_t state) const;
  // With a time stamp in nanoseconds.
  void RecordTime(void* handle, ncclProfilerEventState_t state, int64_t ns) const;

  // Collectives of this kind before this one; thread that ends groups.
  uint64_t NextSequence(Collective collective) { return sequence_[static_cast<size_t>(collective)]++; }

  // Once, when no event is open; the library may be closed by it.
  void Finalize();

 private:
  std::shared_ptr<const ProfilerInterface> profiler_;
  void* context_;
  int rank_;
  std::array<uint64_t, kCollectives> sequence_{};
};

}  // namespace dynamiccl::hostccl
