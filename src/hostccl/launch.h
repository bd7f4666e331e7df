// SPDX-License-Identifier: Apache-2.0
// What one group end asks a stream to run, and running it: all channels of all calls are lanes of one
// progress loop.
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

struct CollectiveOperation {
  Collective collective = Collective::kAllReduce;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  size_t count = 0;  // the call's count argument
  DataType data_type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  // ncclRedOpCreatePreMulSum: with op kSum, this rank's input times this, in the data type. Ranks may differ
  // in the value, not in having one.
  std::optional<PreMultiplier> multiplier;
  // When the call runs.
  std::optional<ElementValue> Multiplier() const {
    return multiplier ? std::optional(multiplier->Read()) : std::nullopt;
  }
  int root = 0;
  CollectiveConfig config;  // complete, except with one rank
  size_t chunk_bytes = 0;   // 0: the protocol's; equal on all ranks, cut to what the protocol can do
  TaskEvents events;
  CallChoice choice;
};

struct Transfer {
  int peer = 0;
  std::byte* buffer = nullptr;  // read only when sending
  size_t bytes = 0;
  DataType data_type = DataType::kInt8;  // as the call named it, for profilers
  TaskEvents events;
};

// The calls of one group on one communicator, in the order in which all ranks run them.
struct CommunicatorPlan {
  std::shared_ptr<Communicator> communicator;
  std::vector<CollectiveOperation> collectives;
  std::vector<Transfer> sends;
  std::vector<Transfer> receives;
};

// The plans at work, side by side; one thread at a time. Starts when it is made: on a communicator launches
// are made, and end, one after the other.
class Launch {
 public:
  // `plans` must outlive it.
  explicit Launch(std::span<const CommunicatorPlan> plans);
  ~Launch();
  Launch(Launch&&) = delete;

  // Until all plans are done or have failed; the first failure.
  ncclResult_t Run();
  // As Run, but gives up, with nothing, once a peer lets it wait for about as long as handing over to another
  // thread takes. Run goes on from there.
  std::optional<ncclResult_t> RunBriefly();

 private:
  class PlanRun;

  bool PollAll();
  void DropDone();
  int64_t NextArrival() const;
  void Sleep(ProgressWait& wait, int64_t arrival_ns);
  ncclResult_t FirstFailure() const;

  const std::span<const CommunicatorPlan> plans_;
  const bool may_spin_;
  std::list<PlanRun> runs_;  // mostly one
};

// Runs the plans to their end; the first failure. On the stream's thread.
inline ncclResult_t RunLaunch(std::span<const CommunicatorPlan> plans) {
  return Launch(plans).Run();
}

}  // namespace dynamiccl::hostccl
