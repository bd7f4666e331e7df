// SPDX-License-Identifier: Apache-2.0
// An NCCL_* variable as NCCL sees it: the environment, then its configuration files.
#pragma once

#include <optional>
#include <string>

namespace dynamiccl {

// Empty when it is set nowhere. Files as NCCL reads them at its first call: NCCL_CONF_FILE, or ~/.nccl.conf
// without it, then /etc/nccl.conf; lines "NAME=value", '#' begins a comment line; the first one that sets it
// counts.
std::optional<std::string> NcclVariable(const std::string& name);

}  // namespace dynamiccl
