// SPDX-License-Identifier: Apache-2.0
// Chooses the address on which a listener is reachable, by the rules of NCCL_SOCKET_IFNAME.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl {

// A network interface of this host and its IPv4 address.
struct InterfaceAddress {
  std::string name;
  uint32_t ipv4 = 0;  // host byte order
};

// `choice` is a dotted IPv4 address or a list of interface names separated by commas. A name is a prefix
// ("eth,ib"); after "=" names are exact ("=eth0"). After "^" the named interfaces are excluded ("^docker,lo",
// or exact: "^=lo").
//
// Returns the address of the first interface of `available` that matches, in the order of the names. With "^"
// the loopback interface is the last resort. Returns kInvalidArgument, with the names that are available,
// when none matches.
Result<uint32_t> ChooseInterface(const std::string& choice, const std::vector<InterfaceAddress>& available);

// Applies ChooseInterface to the interfaces of this network namespace that are up.
Result<uint32_t> AddressOfInterface(const std::string& choice);

}  // namespace dynamiccl
