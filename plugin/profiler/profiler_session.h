// SPDX-License-Identifier: Apache-2.0
// One communicator in NCCL's profiler interface, in a single form for all versions of the interface. It turns
// NCCL's events into times of collectives (plugin/times/kernel_times.h).
#pragma once

#include <cstdint>
#include <memory>

#include "plugin/chain/chained_profiler.h"
#include "plugin/profiler/event_pairs.h"
#include "plugin/times/collective_times.h"
#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/collective/data_type.h"

namespace dynamiccl {

// Holds what NCCL reports about a communicator at init. A member is 0 if this version of the interface does
// not report it.
struct ProfilerInit {
  int version = 0;
  uint64_t communicator = 0;
  int n_ranks = 0;
  int* mask = nullptr;
};

// The part of a collective's event that is needed for its duration.
struct ProfiledCollective {
  int rank = -1;
  Collective collective = Collective::kAllReduce;
  uint64_t count = 0;
  DataType data_type = DataType::kInt8;
  CollectiveConfig config;  // with the number of channels that will run
};

// Returns the plugin that the job would have had without DynamICCL, with an interface version of at most
// `newest`; null if there is none. The first call searches for it.
const ChainedProfiler* ProfilerToChain(int newest) noexcept;
EventPairs& PairsOfProcess() noexcept;

// Owned by NCCL's communicator through the context that a profiler_vN.cc returns. NCCL begins collectives on
// the issuing thread. It begins and ends channels on its own threads, possibly after the session's end. No
// function returns an error to NCCL: if something cannot be timed, it is not timed.
class ProfilerSession {
 public:
  // Returns null if nothing is to be timed; NCCL's mask then stays unchanged.
  static std::unique_ptr<ProfilerSession> Begin(const ProfilerInit& init) noexcept;

  // Both return a handle as KernelTimes does; null if the event is not timed. Nothing is timed outside of
  // timing windows, and no call that a CUDA graph captures.
  void* BeginCollective(const ProfiledCollective& event) noexcept;
  void* BeginChannel(void* collective, int64_t stamp) noexcept;
  // Notes whether the calling thread's next collectives are `captured` into a CUDA graph.
  void GroupBegins(bool captured) noexcept;
  // Returns the bits of NCCL's mask that the chained plugin wants.
  int WantedByOthers() const noexcept { return times_.window().WantedByOthers(); }

  // These functions are static, because NCCL may call them after the session has ended.
  static void StopStamp(void* handle, int64_t stamp) noexcept;
  static void End(void* handle) noexcept;
  static bool IsChannel(const void* handle) noexcept { return KernelTimes::IsChannel(handle); }

 private:
  ProfilerSession(CollectiveTimes& times, const ProfilerInit& init);

  CollectiveTimes& times_;
  const ProfilerInit init_;
  const KernelClock clock_;
};

}  // namespace dynamiccl
