// SPDX-License-Identifier: Apache-2.0
// Sweeps of clusters that nobody measured. They are systems fitted to real times, with every constant moved
// at random and with effects added that the cost model does not know. They serve to train and test the config
// agent. A result from them alone is no claim about a machine.
#pragma once

#include <span>
#include <vector>

#include "src/base/status.h"
#include "src/simulator/system.h"
#include "tools/calibration/timed_systems.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// How clusters are drawn.
struct ClusterOptions {
  int count = 48;
  uint64_t seed = 1;
  // Standard deviation, as a natural logarithm, of the moves of each path's constants and of the cliffs over
  // sizes. 0.3 is somewhat more than what the fits leave on H100 machines.
  double spread = 0.3;
  int repeats = 6;
  // Standard deviation of a repeat, as a natural logarithm.
  double noise = 0.05;
  // Share of repeats that take 1.5 to 3 times as long.
  double outliers = 0.02;
  // If true, the sweep has every size class from 4 KiB to 64 MiB instead of six random sizes. It then shows
  // at which size the best config changes.
  bool every_class = false;
};

// Draws clusters around `systems` in turn, each with two numbers of ranks. The sweep has every config for
// which NCCL has kernels and the cost model a price, at six sizes of each collective or at every size class.
// The default is what the cost model picks from the links' true bandwidths. Equal arguments give equal files
// with the same standard library and a libm that rounds alike.
Result<MeasurementFile> RandomClusters(std::span<const System> systems, const ClusterOptions& options);

// Published times with forced algorithms as a sweep, with one topology for each number of ranks. Such tables
// do not state the protocol, so it is the cost model's for that algorithm. The links are those of the fitted
// system. A time without repeats counts twice. Returns kUnsupported if there are no forced algorithms.
Result<MeasurementFile> SweepOfPublished(const TimedSystems& data, const std::string& name,
                                         const System& fitted);

}  // namespace dynamiccl
