// SPDX-License-Identifier: Apache-2.0
// What the trigger agent took each call of a recorded run for.
#pragma once

#include <cstdint>
#include <vector>

#include "src/policy/policy.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

// Calls by the stage that was recognised after them: index 0 to 3, and 4 for unknown. Steps the same code as
// a job does, on the calls alone.
std::vector<int64_t> RecogniseStages(const Policy& policy, const SectionCalls& section);

}  // namespace dynamiccl
