// SPDX-License-Identifier: Apache-2.0
// The fabric under a communicator, described by numbers that are equal on all ranks. The cost model and the
// config agent know the links only by these numbers.
#pragma once

#include <cstdint>

namespace dynamiccl {

// One class of links. Latency is one-way, in microseconds. Bandwidth is per direction, in units of 1e9 bytes
// per second.
struct LinkParameters {
  double latency_us = 0;
  double bandwidth_gbps = 0;  // 1e9 bytes per second

  friend bool operator==(const LinkParameters&, const LinkParameters&) = default;
};

// This plain value describes one communicator. `max_channels` is the number of channels that the communicator
// has set up.
struct Fabric {
  int32_t n_ranks = 1;
  int32_t n_nodes = 1;
  int32_t max_channels = 1;
  LinkParameters intra;  // between ranks of a node
  LinkParameters inter;  // between nodes; ignored when n_nodes is 1

  friend bool operator==(const Fabric&, const Fabric&) = default;
};

}  // namespace dynamiccl
