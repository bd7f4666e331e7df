// SPDX-License-Identifier: Apache-2.0
// What a sweep has measured so far, written visit by visit, so that a sweep that was killed can go on.
// Grammar: docs/formats/sweep_journal.md. Each line is "<hash> <JSON>\n".
#pragma once

#include <map>
#include <string>

#include "src/base/status.h"
#include "traces/format/hashed_lines.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// The content of a journal.
struct SweepJournal {
  // The swept set in words: a sweep goes on only with its own plan.
  std::string plan;
  // All repeats of a cell in one row; no command.
  MeasurementFile measured;
  // By topology, the promise at the end of its last slice.
  std::map<std::string, double> promises;
  // By topology: true when its cells have all repeats.
  std::map<std::string, bool> complete;
  double seconds = 0;  // time spent so far
  // Length of the journal without a last record that is torn.
  size_t whole_bytes = 0;
  bool torn = false;
};

// A last record that is cut or damaged is left out, because a write may be cut at any byte. Damage before it
// is kCorrupt; no file is kNotFound.
Result<SweepJournal> ReadSweepJournal(const std::string& path);

// Appends records to a journal, as HashedLineWriter does.
class SweepJournalWriter {
 public:
  // Begins a journal and overwrites what was there.
  static Result<SweepJournalWriter> Create(const std::string& path, const std::string& plan);
  // Goes on after `journal.whole_bytes`; a torn record is cut off.
  static Result<SweepJournalWriter> Continue(const std::string& path, const SweepJournal& journal);

  // Writes the fabric of a topology, at the start of each of its slices.
  Status AddContext(const std::string& library, const std::string& machine,
                    const MeasurementContext& context);
  // Writes some repeats of a cell, and the seconds that they took.
  Status AddVisit(const Measurement& row, double seconds);
  // A slice of the budget has gone to a topology. Its seconds replace those of its visits.
  Status EndSlice(const std::string& topology, double seconds, double promise, bool complete);

 private:
  explicit SweepJournalWriter(HashedLineWriter lines) : lines_(std::move(lines)) {}

  HashedLineWriter lines_;
};

}  // namespace dynamiccl
