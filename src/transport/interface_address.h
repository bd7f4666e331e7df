// SPDX-License-Identifier: Apache-2.0
// Which of this host's addresses a listener takes: chosen as NCCL_SOCKET_IFNAME chooses interfaces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl {

struct InterfaceAddress {
  std::string name;
  uint32_t ipv4 = 0;  // host byte order
};

// `choice` is a dotted IPv4 address, or interface names separated by commas: prefixes ("eth,ib"), exact names
// after "=" ("=eth0"), or after "^" what to leave out ("^docker,lo"; exact: "^=lo"). The first interface of
// `available` that fits, in the order of the names given; with "^" loopback comes last.
Result<uint32_t> ChooseInterface(const std::string& choice, const std::vector<InterfaceAddress>& available);

// ChooseInterface among the interfaces of this network namespace that are up.
Result<uint32_t> AddressOfInterface(const std::string& choice);

}  // namespace dynamiccl
