// SPDX-License-Identifier: Apache-2.0
// Predicts the time of each release's choices with the cost model of a single release (kModelRelease), on the
// graphs that each release found. The times that releases predict by their own models cannot be compared,
// because NCCL calibrates its model differently from release to release.
#pragma once

#include <cstdint>
#include <optional>

#include "src/nccl_abi/tuner_v5.h"
#include "tools/canary/cell.h"

namespace dynamiccl {

// The release whose formula and constants price all choices.
inline constexpr const char* kModelRelease = "2.30.7";

// The inputs of the cost model that are equal for all releases. The other inputs, such as the graphs, are in
// the result of each release's run (Cell).
struct OneModel {
  ncclTunerConstants_v5_t constants = {};
  int n_ranks = 2;
  int n_nodes = 1;
  int architecture = 90;  // compute capability times ten
  bool amd_cpu = false;
};

// Returns the model for nodes that are all like `machine`. The constants come from the installation's data
// set of NCCL's choices. It is an error if the installation has no data set.
Result<OneModel> ReadOneModel(const Installation& installation, const DescribedMachine& machine, int ranks,
                              int nodes);

// Returns the microseconds that the model predicts for one call on the graphs of a release's run (`cell`).
// Returns nothing where the model cannot price the call: without graphs, for an unknown protocol, and for
// CollNet. The price depends on the channels of the graphs, not on the channels that `config` asks for.
std::optional<double> ModelPrice(const OneModel& model, const Cell& cell, Collective collective,
                                 uint64_t bytes, const CollectiveConfig& config);

// Returns the microseconds of the algorithm and protocol that the model finds cheapest, on the graphs of a
// release's run (`cell`). Returns nothing where the model cannot price the call.
std::optional<double> BestModelPrice(const OneModel& model, const Cell& cell, Collective collective,
                                     uint64_t bytes);

}  // namespace dynamiccl
