// SPDX-License-Identifier: Apache-2.0
// The collectives of a user's job. Most releases change some choice of NCCL. A change matters only if it
// affects calls of the job (traffic_effect.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/canary/one_model.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Calls of one collective whose sizes are in one size class (src/collective/size_class.h).
struct TrafficClass {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;  // NCCL's total of the size with most calls, rounded up to whole floats a rank
  uint64_t calls = 0;
  uint64_t all_bytes = 0;    // of all its calls
  double recorded_ns = 0;    // time of all these calls in the trace; 0 if some have none
  double waited_ns = 0;      // part of recorded_ns in which the job waited, as far as measured
  bool knows_waits = false;  // the waiting was measured for all these calls

  bool operator==(const TrafficClass&) const = default;
};

// The calls that one rank of a job makes on communicators with the same number of ranks.
struct Traffic {
  int ranks = 0;
  int nodes = 0;  // of the communicator with most bytes, as far as the trace knows; 1 if it does not
  std::vector<TrafficClass> classes;  // those with most bytes first, at most kMaxClasses
  uint64_t calls = 0;                 // in `classes`
  uint64_t calls_left_out = 0;        // of further classes, which have fewer bytes
  uint64_t calls_without_choice = 0;  // Send, Recv and others for which NCCL chooses nothing
  // One text for each other number of ranks: "2 of 4 ranks, 1200 calls" are two communicators. Empty if there
  // are none.
  std::vector<std::string> other_communicators;
  uint64_t steps = 0;             // that the trace marks
  double step_ns = 0;             // median time from one mark to the next; 0 if the trace has no times
  std::optional<OneModel> model;  // prices the job's calls by one release's calibration
};
inline constexpr size_t kMaxClasses = 12;

// Counts the calls of the trace's first rank on communicators of `ranks` ranks. With `ranks` 0, the
// communicators whose number of ranks carries the most bytes count. It is an error when the trace has no
// collective on such a communicator.
Result<Traffic> TrafficOf(const Trace& trace, int ranks);
// Returns the sizes of the classes, each once, ascending.
std::vector<uint64_t> SizesOf(const Traffic& traffic);

}  // namespace dynamiccl
