// SPDX-License-Identifier: Apache-2.0
// Chooses the address on which a listener is reachable, by the rules of NCCL_SOCKET_IFNAME.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl {

// An interface of this host and its IPv4 address.
struct InterfaceAddress {
  std::string name;
  uint32_t ipv4 = 0;  // host byte order
};

// `choice` is a dotted IPv4 address or a list of interface names separated by commas. Names are prefixes
// ("eth,ib"); after "=" they are exact ("=eth0"); after "^" they are left out ("^docker,lo", exact: "^=lo").
//
// Returns the address of the first interface of `available` that fits, in the order of the names. With "^"
// the loopback interface comes last. kInvalidArgument, with the names at hand, when none fits.
Result<uint32_t> ChooseInterface(const std::string& choice, const std::vector<InterfaceAddress>& available);

// ChooseInterface among the interfaces of this network namespace that are up.
Result<uint32_t> AddressOfInterface(const std::string& choice);

}  // namespace dynamiccl
