// SPDX-License-Identifier: Apache-2.0
// Reads several sources of records as one trace, without keeping the records in memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "traces/format/record_source.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Passes the sections of all sources in the order of MergeTraces. Only the records that describe
// communicators stay in memory. If the order of MergeTraces puts sections of another source between two
// sections of a source, a pass reads that source more than once.
class MergedRecords final : public RecordSource {
 public:
  // Reads all sources once. Errors are those of the sources and of MergeTraces.
  static Result<std::unique_ptr<const MergedRecords>> Of(
      std::vector<std::unique_ptr<const RecordSource>> sources);

  Status Pass(RecordSink& sink) const override;
  // The merged sections, with the records that describe their communicators.
  const Trace& outline() const { return outline_; }

 private:
  // The place of a section: the index of its source, and its index in that source.
  struct Place {
    size_t source = 0;
    size_t section = 0;
  };
  class RunSink;

  std::vector<std::unique_ptr<const RecordSource>> sources_;
  Trace outline_;
  std::vector<Place> places_;  // places of the sections of outline_, in the same order
};

// Returns the records of one file, or the merged records of several. Each pass reads the files and has the
// errors of StreamTrace.
Result<std::unique_ptr<const RecordSource>> RecordsOfFiles(const std::vector<std::string>& paths);

}  // namespace dynamiccl
