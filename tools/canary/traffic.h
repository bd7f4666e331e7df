// SPDX-License-Identifier: Apache-2.0
// The collectives of a user's job, and what other choices of NCCL would do to their time. Most releases
// choose otherwise somewhere; what counts is whether the job's own calls become slower.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/canary/cell.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Calls of one collective whose sizes are in one size class (src/collective/size_class.h).
struct TrafficClass {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;  // NCCL's total of the size with most calls, rounded up to whole floats a rank
  uint64_t calls = 0;
  uint64_t all_bytes = 0;  // of all its calls

  bool operator==(const TrafficClass&) const = default;
};

// What one rank of a job calls on communicators of one number of ranks.
struct Traffic {
  int ranks = 0;
  int nodes = 0;  // of the communicator with most bytes, as far as the trace knows; 1 where it does not
  std::vector<TrafficClass> classes;  // those with most bytes first, at most kMostClasses
  uint64_t calls = 0;                 // in `classes`
  uint64_t calls_left_out = 0;        // of further classes, which have fewer bytes
  uint64_t calls_without_choice = 0;  // Send, Recv and others for which NCCL chooses nothing
  // Communicators of other numbers of ranks: "2 of 4 ranks, 1200 calls". Empty if there are none.
  std::vector<std::string> other_communicators;
};
inline constexpr size_t kMostClasses = 12;

// Reads the first rank of the trace. `ranks`: the size of the communicators that count; 0: the size with most
// bytes. An error when the trace has no collective on such a communicator.
Result<Traffic> TrafficOf(const Trace& trace, int ranks);
// Returns the sizes of the classes, each once, ascending.
std::vector<uint64_t> SizesOf(const Traffic& traffic);

// What the later release does to the job's expected time. Each release's own cost table prices the choices of
// both, because tables of two releases may be calibrated apart. Tables do not price channel counts.
struct TrafficEffect {
  // Time of all priced calls with the later release's algorithms and protocols over the time with the
  // earlier's, by each table; 1: no change.
  double by_before = 1;
  double by_after = 1;
  // Microseconds of all priced calls by each release's own table and choices. They show what fewer adapters
  // or channels do, but also how differently the tables are calibrated.
  double own_us_before = 0;
  double own_us_after = 0;
  uint64_t calls = 0;                      // that both tables price
  uint64_t calls_with_other_pair = 0;      // of them, those with another algorithm or protocol
  uint64_t calls_with_other_channels = 0;  // of them, those with another number of channels and nothing else
  uint64_t calls_unpriced = 0;
};
TrafficEffect EffectOn(const Traffic& traffic, const Cell& before, const Cell& after);

// True if the traffic has calls of a collective at a size for which a choice was asked.
bool Has(const Traffic& traffic, Collective collective, uint64_t bytes);

}  // namespace dynamiccl
