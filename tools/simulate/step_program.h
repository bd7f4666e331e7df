// SPDX-License-Identifier: Apache-2.0
// One training step of a generator (traces/generators) as a program of the simulator. Computing is put
// between the calls where the framework does it.
#pragma once

#include <vector>

#include "src/simulator/simulated_job.h"
#include "src/simulator/transfer_demand.h"
#include "traces/generators/operation_list.h"

namespace dynamiccl {

// How many elements of gradients exist at one time of the backward pass.
struct GradientArrival {
  double elements = 0;
  // Nanoseconds of computing since the backward pass began.
  double ns = 0;
};

// Computing time of each rank, in nanoseconds.
struct StepCompute {
  // One pass over one micro-batch.
  double forward_ns = 0;
  // One pass, with recomputation if there is any.
  double backward_ns = 0;
  // Time of the optimizer, which starts after the gradients have arrived.
  double optimizer_ns = 0;
  // The times at which gradients are computed, in rising order up to backward_ns. Empty: the time is in
  // proportion to the elements.
  std::vector<GradientArrival> arrivals = {};
  // Nanoseconds that the host takes to unpack each gathered number before it continues. Used only with
  // StepLayout::host_waits.
  double unpack_ns = 0;
};

// The places of the ranks, and the config that their calls use.
struct StepLayout {
  WorldShape world;
  int ranks_per_node = 1;
  // The config of every call. A collective that does not have its algorithm takes the cheapest path.
  CollectiveConfig config = kLeaveNcclAlone;
  // Number of gathers that the forward pass issues ahead: while a unit is computed, the gathers of this many
  // following units run.
  int gathers_ahead = 1;
  // True: the program waits for each call before it continues, so no call runs at the same time as computing.
  bool host_waits = false;
};

// Returns a program that all ranks run, on the layouts of kAllAxes. The labels of a call decide when the
// program waits for it:
//
// - It waits at once for an activation collective. Between such collectives a pass computes equally long.
// - In a pass without activation collectives, gradients are issued after their part of the backward pass is
//   computed. Gathered parameters must have arrived before their part is computed. A gather is issued at its
//   place in the list; in the forward pass it is issued when the unit before begins.
// - It waits for gradients before the optimizer, and for scalars and other calls at once. It waits for
//   gathers after the step at the end of the step; a gather in the forward pass is waited for when the next
//   one is issued.
// - Calls of one ncclGroup pay one latency together.
//
// It is an error if `demands` has no path for a call.
Result<RankProgram> ProgramOf(const std::vector<WireOperation>& operations, const StepLayout& layout,
                              const StepCompute& compute, SystemDemands& demands);

// The layouts of kAllAxes, in that order.
std::vector<CommunicatorLayout> LayoutsOf(const WorldShape& world);

}  // namespace dynamiccl
