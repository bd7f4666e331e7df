// SPDX-License-Identifier: Apache-2.0
// Reads what the plugin table_tuner wrote: NCCL's cost tables and the constants of NCCL's model.
#pragma once

#include <string>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"

namespace dynamiccl::real_nccl {

struct AskedTable {
  Collective collective = Collective::kBroadcast;
  size_t bytes = 0;          // NCCL's total
  int pipe_ops = 0;          // 0: an extra question of 2.31 and later, whose answer NCCL ignores
  bool registered = false;   // whether both buffers are registered
  std::vector<float> costs;  // microseconds, kProtocols for each algorithm; negative: not offered

  // Returns the cheapest pair that NCCL offers. Of equally cheap pairs it returns the first, as NCCL up to
  // 2.30 does.
  CollectiveConfig Cheapest() const;
};

struct AskedTables {
  std::vector<double> constants;  // the members of ncclTunerConstants_v5_t; empty before version 5
  std::vector<AskedTable> tables;
};

// Returns empty tables when the file is missing.
AskedTables ReadAskedTables(const std::string& path);

}  // namespace dynamiccl::real_nccl
