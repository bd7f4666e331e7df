// SPDX-License-Identifier: Apache-2.0
// The process token, a number that identifies this process, and the host identity, a text that identifies its
// host. A process id does not identify a process: ids are used again, and they differ between process-id
// namespaces.
#pragma once

#include <cstdint>
#include <string>

namespace dynamiccl {

// Returns a random number, drawn at the first call and drawn anew in a child of fork(). Any thread may call
// this.
uint64_t ProcessToken();

// Returns 16 hexadecimal digits. Two processes share memory only if their digits are equal. They are equal
// for all processes of one boot of one kernel in one network namespace; abstract unix sockets do not reach
// beyond it. Where HOSTCCL_HOSTID is set, they are equal for all processes with the same text instead.
std::string HostIdentity();

}  // namespace dynamiccl
