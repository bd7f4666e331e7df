// SPDX-License-Identifier: Apache-2.0
// A trace that is read several times from its beginning, for readers that do not keep its records.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "src/base/status.h"
#include "src/collective/collective_call.h"
#include "traces/format/record_stream.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Passes a trace to a sink, as often as it is asked. One thread at a time.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  // Passes all sections in order. An error of the sink ends the pass and is returned.
  virtual Status Pass(RecordSink& sink) const = 0;
};

// The records of a file that can be streamed. Every pass opens and checks the file, with the errors of
// StreamTrace.
class FileRecords final : public RecordSource {
 public:
  explicit FileRecords(std::string path) : path_(std::move(path)) {}
  Status Pass(RecordSink& sink) const override { return StreamTrace(path_, sink); }

 private:
  std::string path_;
};

// The records of a trace in memory, which must outlive this object.
class MemoryRecords final : public RecordSource {
 public:
  explicit MemoryRecords(const Trace& trace) : trace_(trace) {}
  Status Pass(RecordSink& sink) const override;

 private:
  const Trace& trace_;
};

// The records of a trace that this object owns.
class OwnedRecords final : public RecordSource {
 public:
  explicit OwnedRecords(Trace trace) : trace_(std::move(trace)) {}
  Status Pass(RecordSink& sink) const override { return MemoryRecords(trace_).Pass(sink); }

 private:
  Trace trace_;
};

// Numbers of sends and receives of one section, by the section's number of the communicator, the direction
// and the peer.
using TransferCounts = std::map<std::tuple<uint32_t, Collective, int32_t>, uint64_t>;

// Returns the trace with the last `newest` records of each section, and with all records about communicators
// and about calls that had not returned. The records left out count as lost. `left_out` gets the numbers of
// sends and receives among them, one entry for each section; if it is null, they are not counted.
Result<Trace> ReadTail(const RecordSource& source, uint64_t newest,
                       std::vector<TransferCounts>* left_out = nullptr);

}  // namespace dynamiccl
