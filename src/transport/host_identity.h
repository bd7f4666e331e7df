// SPDX-License-Identifier: Apache-2.0
// Which ranks can share memory: those with the same host identity.
#pragma once

#include <string>

namespace dynamiccl {

// 16 hexadecimal digits, equal for all processes of one boot of one kernel in one network namespace (abstract
// unix sockets end there), or for all with the same HOSTCCL_HOSTID where that is set.
std::string HostIdentity();

}  // namespace dynamiccl
