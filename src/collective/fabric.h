// SPDX-License-Identifier: Apache-2.0
// The fabric under a communicator as numbers that are equal on all ranks: what the cost model and the config
// agent see.
#pragma once

#include <cstdint>

namespace dynamiccl {

// One class of links. Latency is one-way, bandwidth is per direction and per rank pair.
struct LinkParameters {
  double latency_us = 0;
  double bandwidth_gbps = 0;  // 1e9 bytes a second

  friend bool operator==(const LinkParameters&, const LinkParameters&) = default;
};

struct Fabric {
  int32_t n_ranks = 1;
  int32_t n_nodes = 1;
  int32_t max_channels = 1;
  LinkParameters intra;  // between ranks of a node
  LinkParameters inter;  // between nodes; ignored when n_nodes is 1

  friend bool operator==(const Fabric&, const Fabric&) = default;
};

}  // namespace dynamiccl
