// SPDX-License-Identifier: Apache-2.0
// Finds when the collectives of several ranks ran, without holding the ranks' calls in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "src/simulator/timed_cell.h"
#include "tools/report/section_scan.h"
#include "traces/format/record_source.h"

namespace dynamiccl {

// One collective on all ranks that recorded it. Times are nanoseconds, each on its rank's clock.
struct MatchedTimes {
  uint64_t bytes = 0;
  uint32_t communicator = 0;  // number that the first of these ranks gave it
  uint32_t section = 0;       // index of that rank's section
  Collective collective = Collective::kAllReduce;
  uint32_t ranks = 0;         // number of ranks that recorded it
  uint32_t timed = 0;         // how many of these have a duration above 0; the members below are about those
  uint32_t last_section = 0;  // the rank with the shortest duration, which waited for nobody
  int64_t least_ns = 0;       // shortest and longest duration
  int64_t most_ns = 0;
  int64_t sum_ns = 0;
  int64_t start_ns = 0;  // latest start and latest end
  int64_t end_ns = 0;

  // Time from the last rank's start to the last rank's end; -1: not timed. A rank that comes early waits
  // inside its collective, so its own duration is too long. A rank that comes late finds the others' data and
  // may end before them, so its own duration is too short. Clocks that disagree cannot move the result beyond
  // the ranks' own durations.
  int64_t TimeNs() const;
};

// Finds which recorded calls of a trace's ranks are one collective. Send, Recv and the like are left out. If
// one rank of several recorded a call twice, the first record counts.
class MatchedPasses {
 public:
  // Counts the calls. `records` and `sections` (ScanSections with all sections described) must outlive the
  // result.
  static Result<MatchedPasses> Begin(const RecordSource& records, const std::vector<SectionScan>& sections);

  // True if some call has a duration.
  bool any_timed() const { return any_timed_; }
  // Passes each collective to `consumer`. Memory is some 40 MB; a job of more collectives is read in several
  // parts.
  Status Pass(const std::function<void(const MatchedTimes&)>& consumer) const;

 private:
  MatchedPasses(const RecordSource& records, const std::vector<SectionScan>& sections)
      : records_(records), sections_(sections) {}
  Status PassAlone(const std::function<void(const MatchedTimes&)>& consumer) const;

  const RecordSource& records_;
  const std::vector<SectionScan>& sections_;
  uint64_t collectives_ = 0;  // about as many as Pass finds
  bool any_timed_ = false;
};

// Median time for each combination of collective, ranks, nodes and bytes, over all calls of all sections.
Result<std::vector<TimedCell>> TimesOfCells(const RecordSource& records,
                                            const std::vector<SectionScan>& sections);

}  // namespace dynamiccl
