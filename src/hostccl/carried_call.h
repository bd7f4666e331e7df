// SPDX-License-Identifier: Apache-2.0
// Runs a small collective by its kept plan: the data travel with the announcement, so the call writes one
// parcel, waits for those of its peers, and combines them. No lane, no coroutine and no queue is needed
// unless a peer is late.
#pragma once

#include <memory>
#include <optional>

#include "src/hostccl/algorithms/one_pass.h"
#include "src/hostccl/kept_plan.h"
#include "src/hostccl/launch.h"

namespace dynamiccl::hostccl {

// One call on its way. Make it, Announce, and Finish once it has Arrived. Used by the thread that runs the
// communicator's launch.
class CarriedCall {
 public:
  // Copies what it needs of the plan. `communicator` and the buffers must outlive the object.
  CarriedCall(Communicator& communicator, const KeptPlan& plan, const std::byte* send, std::byte* recv);

  // Begins the launch: sends this rank's data to its peers. WakePeers must follow soon, also after Finish.
  void Announce();
  // Wakes the peers that sleep until this rank's data come.
  void WakePeers();
  // Returns true once the data of all peers are here.
  bool Arrived() const;
  // Stores the result and ends the launch.
  void Finish();

  Communicator& communicator() const { return *communicator_; }
  // Returns the number that the launch got in Announce.
  uint64_t launch_number() const { return launch_number_; }

 private:
  // Calls visit(exchange, part) for each channel that carries something.
  template <typename Visit>
  void ForEachPart(Visit visit) const;

  Communicator* communicator_;
  KeptPlan plan_;
  const std::byte* send_;
  std::byte* recv_;
  uint64_t launch_number_ = 0;
};

// Returns the plan for a call whose configuration was chosen, and keeps a new one if the present one is for
// another configuration. Null for a call that is not carried: a large one, one with an operator's factor, on
// emulated links, over several hosts, in rank order, or with an algorithm other than that of NVLS.
const KeptPlan* PlanToKeep(Communicator& communicator, const CollectiveOperation& operation);

// Runs the call, on the calling thread or on the stream's, as Dispatch does (dispatch.h). Errors come through
// the stream and the communicator.
void RunKept(const std::shared_ptr<Communicator>& communicator, const KeptPlan& plan, const std::byte* send,
             std::byte* recv, HostStream& stream);

}  // namespace dynamiccl::hostccl
