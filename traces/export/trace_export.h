// SPDX-License-Identifier: Apache-2.0
// Exports traces to the formats of other tools, with one function for each format. docs/exports.md says what
// each format contains and leaves out.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// One file of an export, in memory.
struct ExportedFile {
  // Path in the folder of the export; empty where the export is one file.
  std::string name;
  std::string content;
};

// The result of an export. The caller writes the files.
struct Exported {
  std::vector<ExportedFile> files;
  std::vector<std::string> notes;  // what was left out, and why
};

// The note about a trace whose times of issue were not measured (TraceSection::order_only).
inline constexpr char kNoComputing[] =
    "no computing between calls: the trace has no measured times of issue, they only order the calls";

// One export format.
struct TraceExporter {
  std::string_view name;      // as `dynamiccl trace export --to` spells it
  std::string_view sentence;  // one line for the help
  bool folder;                // whether the format consists of several files
  Result<Exported> (*run)(const Trace& trace);
};

std::span<const TraceExporter> AllExporters();
// Exports to the format that is named `format`. An unknown name is kInvalidArgument.
Result<Exported> ExportTrace(const Trace& trace, std::string_view format);

// The functions that AllExporters lists.

// Chrome trace JSON: a process for each rank, a thread for each communicator, a slice for each call (an
// instant where no duration is known), arrows between the ranks of the same collective, a marker for each
// training step. Ranks are aligned by SectionClock.
Result<Exported> ExportChromeTimeline(const Trace& trace);
// RFC 4180 with a header line and one row per call; a field is empty where its value is not known.
Result<Exported> ExportCsv(const Trace& trace);
// The JSON-lines form of a trace, which can be read back.
Result<Exported> ExportJsonLines(const Trace& trace);
// Chakra execution traces: length-delimited protobuf, one file per rank.
Result<Exported> ExportChakra(const Trace& trace);
// The tuners' answers as rules of NVIDIA's example tuner (docs/formats/override_rules.md).
Result<Exported> ExportTunerTable(const Trace& trace);
// Measured durations as the JSON of nccl-tests, one file for each collective and communicator size.
Result<Exported> ExportNcclTests(const Trace& trace);
// A GOAL schedule for LogGOPSim, with collectives as the sends and receives of rings. Fails unless all ranks
// of each communicator are in the trace.
Result<Exported> ExportGoal(const Trace& trace);
// Common Trace Format 1.8: one folder per rank, with its metadata and the section as it is in a .ctrace file.
Result<Exported> ExportCtf(const Trace& trace);

}  // namespace dynamiccl
