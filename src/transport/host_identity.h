// SPDX-License-Identifier: Apache-2.0
// Which ranks can share memory: those with the same host identity.
#pragma once

#include <string>

namespace dynamiccl {

// Returns 16 hexadecimal digits. They are equal for all processes of one boot of one kernel in one network
// namespace, because abstract unix sockets end at its border. Where HOSTCCL_HOSTID is set, they are equal for
// all processes with the same text instead.
std::string HostIdentity();

}  // namespace dynamiccl
