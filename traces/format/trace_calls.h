// SPDX-License-Identifier: Apache-2.0
// The calls of one section: its records decoded, and each call joined with the tuner's answer to it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "traces/format/record_views.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// One call of a section.
struct TraceCall {
  IssuedCall issued;
  uint32_t communicator = 0;  // the section's own number of the communicator
  uint32_t stream = 0;
  DurationSource duration_source = DurationSource::kNone;
  // The tuner's answer with the same communicator, call number and index in group; the last one, if there are
  // several.
  std::optional<DecisionView> decision;
  int64_t step = -1;  // step of the last mark before the call; -1: none
};

// One section, sorted by what its records mean.
struct SectionCalls {
  std::map<uint32_t, CommunicatorInfo> communicators;
  std::vector<TraceCall> calls;  // in order of issue
  std::vector<StepView> steps;
  std::vector<MemoryView> memory;
  std::vector<SamplesView> samples;
  std::vector<InsideView> inside;  // at most one for each thread
  // In order of time. If several shares have the same key, the last one is valid.
  std::vector<WaitedShareView> waited_shares;
  // Counts of records that could not be used, for messages: calls on a communicator that the section does not
  // describe (they are left out), decisions without their call, and records of later versions.
  uint64_t without_communicator = 0;
  uint64_t without_call = 0;
  uint64_t unknown_kinds = 0;
};

// Decodes the record of a call without an answer. `communicator` is the record's communicator, `step` the
// step of the last mark before the call.
TraceCall DecodedCall(const TraceRecord& record, const CommunicatorInfo& communicator, int64_t step);

// Returns the communicators that a section describes. The keys are the numbers that the section's process
// gave them.
std::map<uint32_t, CommunicatorInfo> CommunicatorsOf(const TraceSection& section);

// Sorts the records of one section. Never fails: records that make no sense are counted.
SectionCalls CallsOf(const TraceSection& section);
// Returns the calls of each section of a trace, in the order of its sections.
std::vector<SectionCalls> CallsOf(const Trace& trace);

// When a call ran, on its section's clock in nanoseconds.
struct CallInterval {
  int64_t start = 0, end = 0;
};

// Tells when the calls of a section ran. Takes these calls in order of issue. A call runs after it was
// issued, and after the previous call on its communicator and stream. A call without a duration (below 0) has
// an empty interval.
class CallIntervals {
 public:
  CallInterval Take(uint32_t communicator, uint32_t stream, int64_t issued_ns, int64_t duration_ns);

 private:
  std::map<std::pair<uint32_t, uint32_t>, int64_t> ends_;  // end of the last call, by communicator and stream
};

// XXH3 hash of what was issued, communicator by communicator in the order of their first calls. It covers
// each call's number relative to the first one, index, collective, type, operator, bytes, and root or peer.
// It does not cover communicator ids, times, decisions and labels, so a trace and its faithful replay have
// the same hash.
uint64_t OperationHash(const SectionCalls& section);

}  // namespace dynamiccl
