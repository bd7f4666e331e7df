// SPDX-License-Identifier: Apache-2.0
// Lanes of a launch: the calls of one channel one after the other, or the transfers with one peer in one
// direction.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "src/hostccl/algorithms/algorithm_registry.h"
#include "src/hostccl/launch.h"

namespace dynamiccl::hostccl {

// Something the progress loop polls.
class LaunchLane {
 public:
  virtual ~LaunchLane() = default;
  // Goes as far as it can without waiting; true if anything moved.
  virtual bool Poll() = 0;
  virtual bool done() const = 0;
  // Earliest arrival among the messages that it waits for; kNotPosted when none is on its way.
  virtual int64_t next_arrival_ns() const = 0;
  // The only peer that it depends on, or -1: collectives depend on all.
  virtual int peer() const = 0;
};

std::unique_ptr<LaunchLane> MakeChannelLane(const CommunicatorPlan& plan, int channel);
std::unique_ptr<LaunchLane> MakeTransferLane(const CommunicatorPlan& plan, int peer, bool sends);

}  // namespace dynamiccl::hostccl
