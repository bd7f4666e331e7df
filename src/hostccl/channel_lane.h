// SPDX-License-Identifier: Apache-2.0
// The lanes of a launch. A lane runs calls one after another: the collectives of one channel, or the sends or
// receives with one peer. Different lanes make progress side by side.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "src/hostccl/algorithms/algorithm_registry.h"
#include "src/hostccl/launch.h"

namespace dynamiccl::hostccl {

// A sequence of calls that the progress loop of a launch (launch.h) polls. The launch owns the lane, and one
// thread at a time uses it. A lane that fails reports the failure to its communicator, not to the loop.
class LaunchLane {
 public:
  virtual ~LaunchLane() = default;
  // Moves data as far as possible without waiting. Returns true if anything moved.
  virtual bool Poll() = 0;
  virtual bool done() const = 0;
  // Returns the earliest arrival of the messages for which the lane waits, in nanoseconds of CLOCK_MONOTONIC;
  // kNotPosted if no message is on its way.
  virtual int64_t next_arrival_ns() const = 0;
  // Returns the only peer on which the lane depends; -1 for a collective, which depends on all ranks.
  virtual int peer() const = 0;
};

// Each makes one lane of a plan. The plan must outlive the lane.
std::unique_ptr<LaunchLane> MakeChannelLane(const CommunicatorPlan& plan, int channel);
std::unique_ptr<LaunchLane> MakeTransferLane(const CommunicatorPlan& plan, int peer, bool sends);

}  // namespace dynamiccl::hostccl
