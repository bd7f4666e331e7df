// SPDX-License-Identifier: Apache-2.0
// The client of link control: `dynamiccl link` finds the running jobs of this user and sends them requests.
// docs/formats/link_control.md has the messages.
#pragma once

#include <sys/types.h>

#include <vector>

#include "src/base/status.h"
#include "src/transport/link_messages.h"

namespace dynamiccl {

// Returns the process ids of this user's processes that answer requests about links, in ascending order.
std::vector<pid_t> ProcessesWithLinks();

// Sends one request and waits up to 5 s for the answer. Returns kNotFound when the process has no emulated
// links, and kInvalidArgument with the server's reason when the server refuses.
Result<LinkAnswer> AskForLinks(pid_t process, const LinkRequest& request);

}  // namespace dynamiccl
