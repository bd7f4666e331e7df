// SPDX-License-Identifier: Apache-2.0
// One training step of a generator (traces/generators) as a program of the simulator. Computing is put
// between the calls where the framework does it.
#pragma once

#include <vector>

#include "src/simulator/simulated_job.h"
#include "src/simulator/transfer_demand.h"
#include "traces/generators/operation_list.h"

namespace dynamiccl {

// The gradients that exist at one time of the backward pass.
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
  // When gradients are there, in rising order up to backward_ns. Empty: they come evenly by their elements.
  std::vector<GradientArrival> arrivals = {};
  // Nanoseconds that the host spends on each gathered number before it continues, in a step in which the host
  // waits.
  double unpack_ns = 0;
};

// The places of the ranks, and the config that their calls use.
struct StepLayout {
  WorldShape world;
  int ranks_per_node = 1;
  // The config of every call. A collective that does not have its algorithm takes the cheapest path.
  CollectiveConfig config = kLeaveNcclAlone;
  // Gathers of the forward pass that are issued before a unit is computed, beside its own.
  int gathers_ahead = 1;
  // True: the program waits for every call before it goes on, so that no call runs beside computing.
  bool host_waits = false;
};

// A program that all ranks run, on the layouts of kAllAxes. The rules, by the calls' labels:
//
// - An activation collective is waited for at once, and a pass computes evenly between such collectives.
// - Without them, gradients follow their part of the backward pass, and gathered parameters precede theirs. A
//   gather is issued where the list has it (in the forward pass: when the unit before begins), and waited for
//   before its part is computed.
// - Gradients are waited for before the optimizer; scalars and other calls at once; gathers after the step at
//   its end, or in the forward pass when the next one is issued.
// - Calls of one ncclGroup pay one latency.
//
// An error where `demands` has no path for a call.
Result<RankProgram> ProgramOf(const std::vector<WireOperation>& operations, const StepLayout& layout,
                              const StepCompute& compute, SystemDemands& demands);

// The layouts of kAllAxes, in that order.
std::vector<CommunicatorLayout> LayoutsOf(const WorldShape& world);

}  // namespace dynamiccl
