// SPDX-License-Identifier: Apache-2.0
// Prices the choices of any release by NCCL's own model of one release, on the graphs that the other found.
// Two releases are compared by one calibration only this way.
#pragma once

#include <cstdint>
#include <optional>

#include "src/nccl_abi/tuner_v5.h"
#include "tools/canary/cell.h"

namespace dynamiccl {

// The release whose formula and constants price all choices.
inline constexpr const char* kModelRelease = "2.30.7";

// One communicator's share of the model's inputs. The others are in the cells.
struct OneModel {
  ncclTunerConstants_v5_t constants = {};
  int n_ranks = 2;
  int n_nodes = 1;
  int architecture = 90;  // compute capability times ten
  bool amd_cpu = false;
};

// The model for a world of nodes that are all like `machine`. Its constants come from the installation's
// data set of NCCL's choices; an error without it.
Result<OneModel> ReadOneModel(const Installation& installation, const DescribedMachine& machine, int ranks,
                              int nodes);

// Microseconds of one call on the cell's graphs; nothing where the model cannot say: no graphs, a protocol
// that is not known, or CollNet. Channel counts of a call have no price, those of the graphs have.
std::optional<double> ModelPrice(const OneModel& model, const Cell& cell, Collective collective,
                                 uint64_t bytes, const CollectiveConfig& config);

// Microseconds of the pair that the model would choose on the cell's graphs; nothing where it has none.
std::optional<double> BestModelPrice(const OneModel& model, const Cell& cell, Collective collective,
                                     uint64_t bytes);

}  // namespace dynamiccl
