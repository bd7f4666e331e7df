// SPDX-License-Identifier: Apache-2.0
// What the plugin table_tuner wrote down: NCCL's cost tables and the constants of its model.
#pragma once

#include <string>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"

namespace dynamiccl::real_nccl {

struct AskedTable {
  Collective collective = Collective::kBroadcast;
  size_t bytes = 0;          // NCCL's total
  int pipe_ops = 0;          // 0: an extra question of 2.31 and later whose answer is ignored
  bool registered = false;   // both buffers
  std::vector<float> costs;  // kProtocols of each algorithm, microseconds; negative: not offered

  // The cheapest entry that is offered; of equal ones the first, as NCCL up to 2.30 takes it.
  CollectiveConfig Cheapest() const;
};

struct AskedTables {
  std::vector<double> constants;  // of ncclTunerConstants_v5_t, or none
  std::vector<AskedTable> tables;
};

// Empty where the file is missing.
AskedTables ReadAskedTables(const std::string& path);

}  // namespace dynamiccl::real_nccl
