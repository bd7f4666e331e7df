// SPDX-License-Identifier: Apache-2.0
// Converts one training step, as a generator (traces/generators) lists its calls, into a program of the
// simulator. Puts computing between the calls where the framework computes.
#pragma once

#include <vector>

#include "src/simulator/simulated_job.h"
#include "src/simulator/transfer_demand.h"
#include "traces/generators/operation_list.h"

namespace dynamiccl {

// Number of elements of gradients that exist at one time of the backward pass.
struct GradientArrival {
  double elements = 0;
  // Nanoseconds that the rank has computed since the backward pass began.
  double ns = 0;
};

// Computing time of each rank, in nanoseconds.
struct StepCompute {
  // Forward pass of one micro-batch.
  double forward_ns = 0;
  // Backward pass of one micro-batch, including recomputation if there is any.
  double backward_ns = 0;
  // The optimizer, which starts after the gradients have arrived.
  double optimizer_ns = 0;
  // Times at which parts of the gradients have been computed, in rising order up to backward_ns. Empty:
  // gradients are computed at an even pace.
  std::vector<GradientArrival> arrivals = {};
  // Nanoseconds in which the host unpacks one gathered number before the program continues. Used only with
  // StepLayout::host_waits.
  double unpack_ns = 0;
};

// Says which ranks form groups and how many share a node, the config that their calls use, and how the
// program waits.
struct StepLayout {
  WorldShape world;
  int ranks_per_node = 1;
  // The config of every call. A collective for which the system has no times with this config uses the
  // fastest one.
  CollectiveConfig config = kLeaveNcclAlone;
  // Number of parameter gathers that the forward pass issues ahead. While the rank computes one unit
  // (parameters that ZeRO gathers together), the gathers of this many following units run.
  int gathers_ahead = 1;
  // True: the program waits for each call before it continues, so it never computes while a call runs.
  bool host_waits = false;
};

// Returns a program that all ranks run, on one communicator layout for each axis in kAllAxes. The role of a
// call decides when the program waits for the call:
//
// - It waits at once for an activation collective. Between two of these a pass always computes for the same
//   time.
// - In a pass without activation collectives, gradients are issued when their part of the backward pass has
//   been computed. Parameters must have been gathered before the program computes with them. A gather is
//   issued at its place in the list, but in the forward pass already when the program begins to compute the
//   unit before.
// - It waits for all gradients before the optimizer, and for scalars and other calls at once. It waits at the
//   end of the step for gathers of updated parameters. If such gathers are in the forward pass, it waits for
//   each one before it issues the next.
// - The calls of one ncclGroup together pay the latency of one call.
//
// It is an error if the system (`demands`) has no times for a call.
Result<RankProgram> ProgramOf(const std::vector<WireOperation>& operations, const StepLayout& layout,
                              const StepCompute& compute, SystemDemands& demands);

// Returns one communicator layout for each axis in kAllAxes, in the order of kAllAxes.
std::vector<CommunicatorLayout> LayoutsOf(const WorldShape& world);

}  // namespace dynamiccl
