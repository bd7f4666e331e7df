// SPDX-License-Identifier: Apache-2.0
// Lets a process write a message only once, however many communicators and calls it concerns.
#pragma once

#include <string>

namespace dynamiccl {

// Returns true for the first caller in this process with this `reason`, false for all later ones. Reasons are
// kept until the process ends, so they should come from a bounded set of texts; after 1000 different reasons
// the function returns false for every new one. Any thread; takes a lock, so only call it before logging.
bool FirstTime(const std::string& reason);

}  // namespace dynamiccl
