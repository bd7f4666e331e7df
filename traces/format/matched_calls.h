// SPDX-License-Identifier: Apache-2.0
// Finds which calls of several ranks are the same collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "traces/format/trace_calls.h"

namespace dynamiccl {

// The place of a call.
struct CallPlace {
  size_t section = 0;  // index into the sections given
  size_t call = 0;     // index into SectionCalls::calls
};

// One collective on all ranks that recorded it, in the order of sections. Send and Recv are no collectives
// and are left out.
struct MatchedCall {
  uint64_t communicator = 0;
  uint64_t call_number = 0;
  uint16_t index_in_group = 0;
  std::vector<CallPlace> ranks;
};

// Returns the collectives by communicator, then in the order of their calls. Where a rank has the same call
// twice, the first one counts.
std::vector<MatchedCall> MatchCalls(const std::vector<SectionCalls>& sections);

}  // namespace dynamiccl
