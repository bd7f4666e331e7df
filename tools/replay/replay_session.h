// SPDX-License-Identifier: Apache-2.0
// One rank of a replay: creates the planned communicators over the NCCL of this process and issues the
// planned calls.
#pragma once

#include <memory>
#include <vector>

#include "tools/bench/device.h"
#include "tools/bench/unique_id_exchange.h"
#include "traces/replay/replay_plan.h"

namespace dynamiccl {

// Options that say how a plan is issued.
struct ReplayOptions {
  // True: issue at the recorded times, counted from the first call. False: as fast as possible.
  bool paced = false;
  // Number of times that the whole plan runs. Each pass waits for the one before. With several passes the
  // first is not timed, because it touches the buffers for the first time, and because the ranks agree on
  // NCCL's offers only during it.
  int passes = 1;
  // Fill and verify the data of every collective. Calls then run one group at a time, which takes longer.
  bool check = false;
};

// The times that this rank measured, in microseconds.
struct ReplayResult {
  // For each group of the plan its time in the stream, as the median of the passes.
  std::vector<double> group_us;
  // Number of elements that were verified.
  uint64_t checked = 0;
  uint64_t wrong = 0;
  // Median time of a pass.
  double wall_us = 0;
};

// Owns the communicators, devices and buffers of one rank, and is used by one thread. All ranks must call the
// same functions in the same order. Not copyable or movable: devices refer to the library.
class ReplaySession {
 public:
  // Reads the launcher's variables, meets the other ranks and creates the communicator of the whole job.
  static Result<std::unique_ptr<ReplaySession>> Open();
  ~ReplaySession();
  ReplaySession(const ReplaySession&) = delete;
  ReplaySession& operator=(const ReplaySession&) = delete;

  const RankPlace& place() const { return place_; }
  const NcclLibrary& library() const { return library_; }
  // Runs the plan; call it once. The communicator of the whole job carries no call itself, so that a
  // recording of the replay has only the trace's calls.
  Result<ReplayResult> Run(const ReplayPlan& plan, const ReplayOptions& options);

 private:
  // A communicator of the plan with a stream and buffers of its own: traces use one stream for each process
  // group.
  struct Lane {
    ncclComm_t communicator = nullptr;
    int32_t n_ranks = 1;
    int32_t rank = 0;
    std::unique_ptr<Device> device;
    std::byte* send = nullptr;
    std::byte* receive = nullptr;
  };

  ReplaySession(NcclLibrary library, const RankPlace& place) : library_(std::move(library)), place_(place) {}
  Status Start();
  Status CreateLanes(const ReplayPlan& plan);
  Status AllocateBuffers(const ReplayPlan& plan);
  Status IssueGroup(Lane& lane, const ReplayGroup& group);
  Status IssueCall(Lane& lane, const TraceCall& call, size_t offset);
  Status IssueAllToAll(Lane& lane, const CollectiveCall& call, size_t offset);
  Status FillGroup(Lane& lane, const ReplayGroup& group);
  Status CheckGroup(Lane& lane, const ReplayGroup& group, ReplayResult& result);
  Status IssuePlan(const ReplayPlan& plan, const ReplayOptions& options, ReplayResult& result);
  Status Synchronize();
  Status CollectTimes(const ReplayPlan& plan, int passes, ReplayResult& result);

  NcclLibrary library_;
  RankPlace place_;
  std::unique_ptr<Device> device_;
  ncclComm_t job_ = nullptr;
  std::vector<Lane> lanes_;
};

}  // namespace dynamiccl
