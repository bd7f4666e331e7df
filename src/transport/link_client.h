// SPDX-License-Identifier: Apache-2.0
// The asking side of link control.
#pragma once

#include <sys/types.h>

#include <vector>

#include "src/base/status.h"
#include "src/transport/link_messages.h"

namespace dynamiccl {

// Processes of this user that answer requests about links, by process id.
std::vector<pid_t> ProcessesWithLinks();

// kNotFound when the process has no emulated links; kInvalidArgument when it refuses, with its reason.
Result<LinkAnswer> AskForLinks(pid_t process, const LinkRequest& request);

}  // namespace dynamiccl
