// SPDX-License-Identifier: Apache-2.0
// Several sources of records as one trace, for readers that do not keep its records.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "traces/format/record_source.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Passes the sections that MergeTraces would return, in its order. In memory it keeps only the records that
// describe communicators. A pass reads a source once for each run of neighbouring sections that it gives: a
// source whose sections stand between those of others is read several times.
class MergedRecords final : public RecordSource {
 public:
  // Reads all sources once. Errors are those of the sources and of MergeTraces.
  static Result<std::unique_ptr<const MergedRecords>> Of(
      std::vector<std::unique_ptr<const RecordSource>> sources);

  Status Pass(RecordSink& sink) const override;
  // The merged sections, with the records that describe their communicators.
  const Trace& outline() const { return outline_; }

 private:
  // The place of a section: its source, and its number there.
  struct Place {
    size_t source = 0;
    size_t section = 0;
  };
  class RunSink;

  std::vector<std::unique_ptr<const RecordSource>> sources_;
  Trace outline_;
  std::vector<Place> places_;  // those of the sections of outline_, in the same order
};

// Returns the records of one file, or the merged records of several. Each pass reads the files and has the
// errors of StreamTrace.
Result<std::unique_ptr<const RecordSource>> RecordsOfFiles(const std::vector<std::string>& paths);

}  // namespace dynamiccl
