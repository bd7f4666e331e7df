// SPDX-License-Identifier: Apache-2.0
// How fast a recorded run went, start and end left out.
#pragma once

#include "src/base/status.h"
#include "traces/format/trace.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

struct StepPace {
  double milliseconds = 0;
  bool marked = false;  // of a step that the program marked; else from the first call of the run to its last
};

// With marks the median of the steps after the first two; an error without two calls.
Result<StepPace> PaceOfSection(const SectionCalls& calls);
// Of the first section.
Result<StepPace> PaceOf(const Trace& trace);

}  // namespace dynamiccl
