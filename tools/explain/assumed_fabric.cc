// SPDX-License-Identifier: Apache-2.0
#include "tools/explain/assumed_fabric.h"

#include <fmt/format.h>

namespace dynamiccl {

MeasurementContext AssumedFabric(int n_ranks, int n_nodes) {
  CostModelInput model;
  model.fabric = {
      .n_ranks = n_ranks, .n_nodes = n_nodes, .max_channels = 8, .intra = {1, 150}, .inter = {4, 50}};
  model.constants = NcclHopperConstants(2);
  return {fmt::format("{} nodes x {} (NVLink, InfiniBand)", n_nodes, n_ranks / n_nodes), model};
}

}  // namespace dynamiccl
