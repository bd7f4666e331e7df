// SPDX-License-Identifier: Apache-2.0
// What a sweep has measured so far, written visit by visit, so that a sweep that was killed goes on. Grammar:
// docs/formats/sweep_journal.md.
#pragma once

#include <map>
#include <string>

#include "src/base/status.h"
#include "traces/format/hashed_lines.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

struct SweepJournal {
  std::string plan;                        // what is swept, in words: a sweep goes on with its own plan only
  MeasurementFile measured;                // all repeats of a cell in one row; no command
  std::map<std::string, double> promises;  // of each topology at the end of its last slice
  std::map<std::string, bool> complete;    // topologies whose cells have all repeats
  double seconds = 0;                      // spent so far
  size_t whole_bytes = 0;                  // without the last record where that is torn
  bool torn = false;
};

// A last record that is cut or damaged is left out, since a write may be cut at any byte; damage before it is
// kCorrupt. kNotFound without a file.
Result<SweepJournal> ReadSweepJournal(const std::string& path);

// Appends records to a journal, as HashedLineWriter does.
class SweepJournalWriter {
 public:
  // Begins a journal, over what was there.
  static Result<SweepJournalWriter> Create(const std::string& path, const std::string& plan);
  // Goes on after `journal.whole_bytes`; what is torn is cut off.
  static Result<SweepJournalWriter> Continue(const std::string& path, const SweepJournal& journal);

  Status AddContext(const std::string& library, const std::string& machine,
                    const MeasurementContext& context);
  // Some repeats of a cell, and what they took.
  Status AddVisit(const Measurement& row, double seconds);
  // A slice of the budget has gone to a topology; its seconds replace those of its visits.
  Status EndSlice(const std::string& topology, double seconds, double promise, bool complete);

 private:
  explicit SweepJournalWriter(HashedLineWriter lines) : lines_(std::move(lines)) {}

  HashedLineWriter lines_;
};

}  // namespace dynamiccl
