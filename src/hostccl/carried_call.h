// SPDX-License-Identifier: Apache-2.0
// Runs a small collective by its cached plan (plan_cache.h). The data travel with the announcement of the
// buffers: the call writes one parcel, waits for the parcels of its peers, and combines them. It needs no
// lane, coroutine or queue unless a peer is late.
#pragma once

#include <memory>
#include <optional>

#include "src/hostccl/algorithms/one_pass.h"
#include "src/hostccl/launch.h"
#include "src/hostccl/plan_cache.h"

namespace dynamiccl::hostccl {

// One call in progress. Call Announce, then Finish once Arrived returns true. The thread that runs the
// communicator's launch uses the object.
class CarriedCall {
 public:
  // `communicator`, `plan` and the buffers must outlive the object.
  CarriedCall(Communicator& communicator, const CachedPlan& plan, const std::byte* send, std::byte* recv)
      : communicator_(&communicator), plan_(&plan), send_(send), recv_(recv) {}

  // Begins the launch and sends this rank's data to its peers. The caller must call WakePeers soon
  // afterwards; Finish may come before that.
  void Announce();
  // Wakes the peers that sleep until this rank's data arrive.
  void WakePeers();
  // Returns true once the data of all peers have arrived.
  bool Arrived() const;
  // Stores the result and ends the launch.
  void Finish();

  Communicator& communicator() const { return *communicator_; }
  const CachedPlan& plan() const { return *plan_; }
  // Returns this call in its present state, with a copy of its plan.
  CarriedCall With(const CachedPlan& plan) const {
    CarriedCall call = *this;
    call.plan_ = &plan;
    return call;
  }
  // Returns the number that Announce gave to the launch.
  uint64_t launch_number() const { return launch_number_; }

 private:
  // Calls visit(exchange, part) for each channel that carries a part of the data.
  template <typename Visit>
  void ForEachPart(Visit visit) const;

  Communicator* communicator_;
  const CachedPlan* plan_;
  const std::byte* send_;
  std::byte* recv_;
  uint64_t launch_number_ = 0;
};

// Returns the cached plan of a call whose configuration was chosen. It makes the plan if there is none for
// this configuration. Returns null for a call that is not carried: a large call, an operator with a factor,
// emulated links, several hosts, sums in rank order, or an algorithm other than NVLS.
const CachedPlan* PlanInCache(Communicator& communicator, const CollectiveOperation& operation);

// Runs the call, on the calling thread or on the stream's thread, as Dispatch does (dispatch.h). Errors are
// reported by the stream and the communicator.
void RunCached(const std::shared_ptr<Communicator>& communicator, const CachedPlan& plan,
               const std::byte* send, std::byte* recv, HostStream& stream);

}  // namespace dynamiccl::hostccl
