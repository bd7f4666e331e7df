// SPDX-License-Identifier: Apache-2.0
// Whether ranks issued their calls on two communicators in the same order.
#pragma once

#include <optional>

#include "tools/hang/hang_findings.h"

namespace dynamiccl {

// Among the newest calls: the first pair of communicators on which two processes issued two calls the one in
// this order, the other in the reverse. Legal where the calls can run side by side; on one stream, or where
// the device has no room for both, ranks wait for each other without end.
std::optional<HangFinding> UnlikeOrder(const JobCalls& job);

}  // namespace dynamiccl
