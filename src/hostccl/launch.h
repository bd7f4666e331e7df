// SPDX-License-Identifier: Apache-2.0
// The work that a stream gets at the end of a group, and how it runs. All channels of all calls are lanes of
// one progress loop on one thread.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/collective/data_type.h"
#include "src/collective/reduce_op.h"
#include "src/hostccl/call_choice.h"
#include "src/hostccl/communicator.h"
#include "src/hostccl/profiled_events.h"
#include "src/hostccl/progress_wait.h"
#include "src/hostccl/reduce_kernels/reduce_kernel.h"

namespace dynamiccl::hostccl {

class LaunchLane;

// One validated collective call; the planner fills in `config` and `chunk_bytes`.
struct CollectiveOperation {
  Collective collective = Collective::kAllReduce;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  size_t count = 0;  // the count argument of the call
  DataType data_type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  // The factor of ncclRedOpCreatePreMulSum. `op` is then kSum, and this rank's input is multiplied by the
  // factor before the sum. Ranks may have different factors, but all ranks must have one or none.
  std::optional<PreMultiplier> multiplier;
  // Returns the value of the factor now, when the call runs.
  std::optional<ElementValue> Multiplier() const {
    return multiplier ? std::optional(multiplier->Read()) : std::nullopt;
  }
  int root = 0;
  CollectiveConfig config;  // complete, except with one rank
  size_t chunk_bytes = 0;   // 0: the protocol's own; equal on all ranks, limited to what the protocol can do
  TaskEvents events;
  CallChoice choice;
};

// One validated send or receive.
struct Transfer {
  int peer = 0;
  std::byte* buffer = nullptr;  // only read when sending
  size_t bytes = 0;
  DataType data_type = DataType::kInt8;  // as passed by the program, for profilers
  TaskEvents events;
};

// The calls of one group on one communicator. All ranks run them in this order.
struct CommunicatorPlan {
  std::shared_ptr<Communicator> communicator;
  std::vector<CollectiveOperation> collectives;
  std::vector<Transfer> sends;
  std::vector<Transfer> receives;
};

// Runs plans side by side. The constructor starts them, and one thread at a time drives them with Run or
// RunBriefly. The launches of a communicator are made one after another and end in the same order. If one
// plan fails, the others go on.
class Launch {
 public:
  // `plans` must outlive the launch.
  explicit Launch(std::span<const CommunicatorPlan> plans);
  // Continues a launch of one communicator that began elsewhere. It gets the launch's number and its only
  // remaining lane. Of the plan only the communicator is used.
  Launch(const CommunicatorPlan& plan, uint64_t launch_number, std::unique_ptr<LaunchLane> rest);
  ~Launch();
  Launch(Launch&&) = delete;

  // Runs until all plans are done or have failed. Returns the first failure.
  ncclResult_t Run();
  // Like Run, but returns nothing after it has waited for a peer about as long as passing the launch to
  // another thread takes. Run can then continue.
  std::optional<ncclResult_t> RunBriefly();

 private:
  class PlanRun;

  // Polls every plan once. Returns true if anything moved.
  bool PollAll();
  // Removes the plans that have ended.
  void DropDone();
  // Returns the earliest arrival over all lanes; kNotPosted if no message is on its way.
  int64_t NextArrival() const;
  // Checks whether the peers are alive if the wait has been long. Then sleeps on a doorbell, at most until
  // the arrival.
  void Sleep(ProgressWait& wait, int64_t arrival_ns);
  // Returns the result of the launch: that of the first communicator that failed or was revoked, else
  // ncclSuccess.
  ncclResult_t FirstFailure() const;

  const std::span<const CommunicatorPlan> plans_;
  const bool may_spin_;
  std::list<PlanRun> runs_;  // mostly one
};

// Runs the plans to their end on the stream's thread. Returns the first failure.
inline ncclResult_t RunLaunch(std::span<const CommunicatorPlan> plans) {
  return Launch(plans).Run();
}

}  // namespace dynamiccl::hostccl
