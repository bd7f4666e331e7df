// SPDX-License-Identifier: Apache-2.0
// The lanes of a launch. A lane is a sequence of calls that run one after another: the collectives of one
// channel, or the transfers with one peer in one direction. Different lanes make progress side by side.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "src/hostccl/algorithms/algorithm_registry.h"
#include "src/hostccl/launch.h"

namespace dynamiccl::hostccl {

// A unit that the progress loop of a launch (launch.h) polls. The launch owns it; one thread at a time. A
// lane that fails reports the failure to its communicator, not to the loop.
class LaunchLane {
 public:
  virtual ~LaunchLane() = default;
  // Goes as far as it can without waiting. Returns true if anything moved.
  virtual bool Poll() = 0;
  virtual bool done() const = 0;
  // Returns the earliest arrival of the messages that the lane waits for, in nanoseconds of CLOCK_MONOTONIC;
  // kNotPosted if none is on its way.
  virtual int64_t next_arrival_ns() const = 0;
  // Returns the only peer on which the lane depends; -1 for collectives, which depend on all.
  virtual int peer() const = 0;
};

// Make lanes of a plan, which must outlive them.
std::unique_ptr<LaunchLane> MakeChannelLane(const CommunicatorPlan& plan, int channel);
std::unique_ptr<LaunchLane> MakeTransferLane(const CommunicatorPlan& plan, int peer, bool sends);

}  // namespace dynamiccl::hostccl
