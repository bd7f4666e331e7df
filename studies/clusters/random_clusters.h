// SPDX-License-Identifier: Apache-2.0
// Sweeps of clusters that nobody measured: systems fitted to real times, with every constant moved at random
// and with what the cost model does not know added. For training and testing of the config agent; nothing
// that is learned from them alone is a claim about a machine.
#pragma once

#include <span>
#include <vector>

#include "src/base/status.h"
#include "src/simulator/system.h"
#include "tools/calibration/timed_systems.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

struct ClusterOptions {
  int count = 48;
  uint64_t seed = 1;
  // Standard deviation, as a natural logarithm, of what each path's constants are moved by, and of the cliffs
  // over sizes that each path gets. 0.3 is somewhat more than what the fits leave on H100 machines.
  double spread = 0.3;
  int repeats = 6;
  double noise = 0.05;     // of a repeat, as a natural logarithm
  double outliers = 0.02;  // share of repeats that take 1.5 to 3 times as long
  // Every size class from 4 KiB to 64 MiB in place of six sizes at random: shows at which size a best
  // changes.
  bool every_class = false;
};

// `systems` serve in turn; each cluster has two numbers of ranks. Every config that NCCL has kernels for and
// the cost model prices, at six sizes of each collective or at all of a range; the default is what the cost
// model picks from the links' true bandwidths. Equal arguments give equal files on machines whose libm rounds
// alike.
Result<MeasurementFile> RandomClusters(std::span<const System> systems, const ClusterOptions& options);

// Forced algorithms of published times as a sweep, each number of ranks a topology: the protocol, which such
// tables do not say, is the cost model's for that algorithm, links are the fitted system's, and a time
// without repeats stands twice. kUnsupported without forced algorithms.
Result<MeasurementFile> SweepOfPublished(const TimedSystems& data, const std::string& name,
                                         const System& fitted);

}  // namespace dynamiccl
