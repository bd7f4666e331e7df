// SPDX-License-Identifier: Apache-2.0
// One communicator as NCCL's profiler interface sees it: the single form behind the versions of that
// interface. It turns NCCL's events into times of collectives (plugin/times/kernel_times.h).
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

// What a version tells of the communicator; 0 and -1: nothing.
struct ProfilerInit {
  int version = 0;
  uint64_t communicator = 0;
  int n_ranks = 0;
  int* mask = nullptr;
};

// The part of a collective's event that matters to its duration.
struct ProfiledCollective {
  int rank = -1;
  Collective collective = Collective::kAllReduce;
  uint64_t count = 0;
  DataType data_type = DataType::kInt8;
  CollectiveConfig config;  // channels: how many will run
};

// The plugin that the job would have had, and whose versions this NCCL knows up to `newest`; null when there
// is none. Looked for at the first call.
const ChainedProfiler* ProfilerToChain(int newest) noexcept;
EventPairs& PairsOfProcess() noexcept;

// Owned by NCCL's communicator through the context that a profiler_vN.cc returns. NCCL begins collectives on
// the issuing thread; channels begin and end on threads of its own, with or without a session. No function
// fails towards NCCL: what cannot be timed is not.
class ProfilerSession {
 public:
  // Null when nothing is to be timed; NCCL's mask then stays as it is.
  static std::unique_ptr<ProfilerSession> Begin(const ProfilerInit& init) noexcept;

  // Handles as in KernelTimes; null: not timed. Nothing is timed outside of windows, nor what a graph
  // captures.
  void* BeginCollective(const ProfiledCollective& event) noexcept;
  void* BeginChannel(void* collective, int64_t stamp) noexcept;
  // The calling thread's next collectives are `captured` into a CUDA graph, or are not.
  void GroupBegins(bool captured) noexcept;
  // The bits of NCCL's mask that a chained plugin wants.
  int WantedByOthers() const noexcept { return times_.window().WantedByOthers(); }

  // Without a session, as NCCL calls them.
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
