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

struct ReplayOptions {
  bool paced = false;  // issue at the recorded times, counted from the first call; else as fast as possible
  // The whole plan so often, each time when all of the time before has ended. The first of several is not
  // timed: buffers are touched for the first time, and no rank knows yet what NCCL offers the others.
  int passes = 1;
  bool check = false;  // fill and verify the data of every collective; calls then run one group at a time
};

struct ReplayResult {
  std::vector<double> group_us;  // per group of the plan, in the stream, on this rank; median of the passes
  uint64_t checked = 0;          // elements verified
  uint64_t wrong = 0;
  double wall_us = 0;  // of a pass, the median
};

// Not copyable, not movable: devices refer to the library. All ranks call the same functions in the same
// order.
class ReplaySession {
 public:
  // Reads the launcher's variables, meets the other ranks and creates the communicator of the whole job.
  static Result<std::unique_ptr<ReplaySession>> Open();
  ~ReplaySession();
  ReplaySession(const ReplaySession&) = delete;
  ReplaySession& operator=(const ReplaySession&) = delete;

  const RankPlace& place() const { return place_; }
  const NcclLibrary& library() const { return library_; }
  // The job's communicator carries no call of its own, so that a recording of the replay holds the trace's
  // calls alone.
  Result<ReplayResult> Run(const ReplayPlan& plan, const ReplayOptions& options);

 private:
  // A communicator of the plan, with a stream and buffers of its own: traces use one stream a process group.
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
