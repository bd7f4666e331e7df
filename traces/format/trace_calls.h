// SPDX-License-Identifier: Apache-2.0
// The calls of one section: records taken apart, and each call joined with the answer that a tuner gave for
// it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "traces/format/record_views.h"
#include "traces/format/trace.h"

namespace dynamiccl {

struct TraceCall {
  IssuedCall issued;
  uint32_t communicator = 0;  // the section's own number of it
  uint32_t stream = 0;
  DurationSource duration_source = DurationSource::kNone;
  std::optional<DecisionView>
      decision;       // of the same communicator, call number and index in group; the last one asked
  int64_t step = -1;  // of the last step mark before the call, -1 without one
};

struct SectionCalls {
  std::map<uint32_t, CommunicatorInfo> communicators;
  std::vector<TraceCall> calls;  // in order of issue
  std::vector<StepView> steps;
  std::vector<MemoryView> memory;
  std::vector<InsideView> inside;              // one a thread at most
  std::vector<WaitedShareView> waited_shares;  // in order; later ones replace earlier ones
  // What could not be used, for messages.
  uint64_t without_communicator =
      0;                      // calls on a communicator that the section does not describe; they are left out
  uint64_t without_call = 0;  // decisions whose call is not here
  uint64_t unknown_kinds = 0;  // records of later versions
};

SectionCalls CallsOf(const TraceSection& section);

// XXH3 over what was issued, communicator by communicator in the order of their first calls: (call number
// counted from the first, index, collective, type, op, bytes, root or peer). Equal for a trace and its
// faithful replay: ids of communicators, times, decisions and labels do not count.
uint64_t OperationHash(const SectionCalls& section);

}  // namespace dynamiccl
