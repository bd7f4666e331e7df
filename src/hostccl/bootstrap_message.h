// SPDX-License-Identifier: Apache-2.0
// The ranks of a new communicator first send each other their addresses and the settings that must be equal.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/hostccl/communicator.h"
#include "src/transport/topology.h"

namespace dynamiccl::hostccl {

// The address and settings that a rank sends to the others at the rendezvous.
struct BootstrapMessage {
  std::string listener;  // MeshListener::name
  CommunicatorSettings settings;
  uint64_t topology_hash = 0;

  // Returns the fields in this order: listener (u32 length, bytes), i32 channels, u8 rank order, u8 release,
  // u64 topology hash.
  std::vector<std::byte> Encode() const;
  // Returns kCorrupt for a message that is too short.
  static Result<BootstrapMessage> Decode(std::span<const std::byte> bytes);
};

// Returns kInvalidArgument and names the first setting in which a rank differs from rank 0.
Status CheckEqualSettings(const std::vector<BootstrapMessage>& ranks);

// Returns the hash of the topology's text form. Ranks compare their topologies by this hash.
uint64_t HashOf(const Topology& topology);

}  // namespace dynamiccl::hostccl
