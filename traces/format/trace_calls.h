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

// One call.
struct TraceCall {
  IssuedCall issued;
  uint32_t communicator = 0;  // the section's own number of it
  uint32_t stream = 0;
  DurationSource duration_source = DurationSource::kNone;
  // The answer for the same communicator, call number and index in group; the last one, if there are several.
  std::optional<DecisionView> decision;
  int64_t step = -1;  // step of the last mark before the call; -1: none
};

// One section, sorted by what its records mean.
struct SectionCalls {
  std::map<uint32_t, CommunicatorInfo> communicators;
  std::vector<TraceCall> calls;  // in order of issue
  std::vector<StepView> steps;
  std::vector<MemoryView> memory;
  std::vector<InsideView> inside;              // one a thread at most
  std::vector<WaitedShareView> waited_shares;  // in order; later ones replace earlier ones
  // Records that could not be used, for messages: calls on a communicator that the section does not describe,
  // which are left out; decisions without their call; records of later versions.
  uint64_t without_communicator = 0;
  uint64_t without_call = 0;
  uint64_t unknown_kinds = 0;
};

// Never fails: records that make no sense are counted.
SectionCalls CallsOf(const TraceSection& section);

// When a call ran, on its section's clock in nanoseconds.
struct CallInterval {
  int64_t start = 0, end = 0;
};

// When each call of `section` ran: after it was issued, and after the previous call on its communicator and
// stream. A call without a duration has an empty interval.
std::vector<CallInterval> IntervalsOf(const SectionCalls& section);

// XXH3 over what was issued, communicator by communicator in the order of their first calls. Each call counts
// with its number from the first one on, index, collective, type, op, bytes, and root or peer. The hash is
// equal for a trace and its faithful replay: ids of communicators, times, decisions and labels do not count.
uint64_t OperationHash(const SectionCalls& section);

}  // namespace dynamiccl
