// SPDX-License-Identifier: Apache-2.0
// Messages that a process writes once, however many communicators and calls they concern.
#pragma once

#include <string>

namespace dynamiccl {

// True for the first caller in this process that names `reason`, false for all later ones. Reasons are kept
// until the process ends, so they are texts of a bounded set, not of each call. Any thread; takes a lock, so
// only paths that are about to log ask.
bool FirstTime(const std::string& reason);

}  // namespace dynamiccl
