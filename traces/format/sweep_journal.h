// SPDX-License-Identifier: Apache-2.0
// The results of a sweep so far, appended after each visit, so that a sweep that was killed can continue.
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
  // Text that describes what is swept. A sweep continues a journal only if the journal's plan equals its own.
  std::string plan;
  // All repeats of a cell are in one row. The field `command` is empty.
  MeasurementFile measured;
  // For each topology, what its last slice of the time budget promised: the regret, in octaves, that another
  // second of sweeping was expected to remove.
  std::map<std::string, double> promises;
  // For each topology, whether all its cells have all repeats.
  std::map<std::string, bool> complete;
  double seconds = 0;  // time spent so far
  // Length of the journal in bytes without a torn last record.
  size_t whole_bytes = 0;
  bool torn = false;
};

// Reads a journal. A last record that is cut or damaged is left out, because a write may be cut at any byte.
// Damage before the last record is kCorrupt; a missing file is kNotFound.
Result<SweepJournal> ReadSweepJournal(const std::string& path);

// Appends records to a journal, as HashedLineWriter does.
class SweepJournalWriter {
 public:
  // Begins a journal and overwrites what was there.
  static Result<SweepJournalWriter> Create(const std::string& path, const std::string& plan);
  // Continues the journal after `journal.whole_bytes`; a torn record is cut off.
  static Result<SweepJournalWriter> Continue(const std::string& path, const SweepJournal& journal);

  // Writes the fabric of a topology, at the start of each of its slices.
  Status AddContext(const std::string& library, const std::string& machine,
                    const MeasurementContext& context);
  // Writes some repeats of a cell, and the seconds that they took.
  Status AddVisit(const Measurement& row, double seconds);
  // Notes that a slice of the time budget was spent on a topology. The slice's seconds replace the sum of its
  // visits' seconds. `promise` is the regret, in octaves, that another second of sweeping was expected to
  // remove.
  Status EndSlice(const std::string& topology, double seconds, double promise, bool complete);

 private:
  explicit SweepJournalWriter(HashedLineWriter lines) : lines_(std::move(lines)) {}

  HashedLineWriter lines_;
};

}  // namespace dynamiccl
