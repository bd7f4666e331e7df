// SPDX-License-Identifier: Apache-2.0
// A number that tells this process from every other one, its parent and children included. Process ids do
// not: they are used again, and they differ between process-id namespaces.
#pragma once

#include <cstdint>
#include <string>

namespace dynamiccl {

// A random number, drawn at the first call and drawn anew in a child of fork(). Any thread.
uint64_t ProcessToken();

// Ranks can share memory if they have the same host identity:
// Returns 16 hexadecimal digits. They are equal for all processes of one boot of one kernel in one network
// namespace, because abstract unix sockets end at its border. Where HOSTCCL_HOSTID is set, they are equal for
// all processes with the same text instead.
std::string HostIdentity();

}  // namespace dynamiccl
