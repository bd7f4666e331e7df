// SPDX-License-Identifier: Apache-2.0
// Sends without their receives, and the reverse.
#pragma once

#include <optional>

#include "tools/hang/hang_findings.h"

namespace dynamiccl {

// NCCL pairs the n-th send from one rank to another with the n-th receive there. Only pairs of ranks whose
// traces lost nothing are looked at: where a count begins is not known of the others.
std::optional<HangFinding> FirstUnmatchedTransfer(uint64_t id, const JobCommunicator& communicator);

}  // namespace dynamiccl
