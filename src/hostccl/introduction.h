// SPDX-License-Identifier: Apache-2.0
// What the ranks of a new communicator tell each other first: where to reach them, and the settings that must
// be equal.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/hostccl/communicator.h"
#include "src/transport/topology.h"

namespace dynamiccl::hostccl {

struct Introduction {
  std::string listener;  // MeshListener::name
  CommunicatorSettings settings;
  uint64_t topology_hash = 0;

  std::vector<std::byte> Encode() const;
  static Result<Introduction> Decode(std::span<const std::byte> bytes);
};

// The first setting in which a rank differs from rank 0.
Status CheckEqualSettings(const std::vector<Introduction>& ranks);

uint64_t HashOf(const Topology& topology);

}  // namespace dynamiccl::hostccl
