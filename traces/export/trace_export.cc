// SPDX-License-Identifier: Apache-2.0
// The list of exporters, and the choice of one by name.
#include "traces/export/trace_export.h"

#include "traces/format/trace_json.h"

namespace dynamiccl {

std::span<const TraceExporter> AllExporters() {
  static const TraceExporter exporters[] = {
      {"jsonl", "JSON lines: everything, and the way back", false, ExportJsonLines},
      {"csv", "a table of calls", false, ExportCsv},
      {"chrome", "a timeline for Perfetto and chrome://tracing", false, ExportChromeTimeline},
      {"tuner-csv", "decisions as rules of NVIDIA's example tuner", false, ExportTunerTable},
      {"nccl-tests", "measured durations as nccl-tests' JSON", true, ExportNcclTests},
      {"chakra", "Chakra execution traces, for ASTRA-sim", true, ExportChakra},
      {"goal", "a GOAL schedule, for LogGOPSim", false, ExportGoal},
      {"ctf", "Common Trace Format 1.8, for babeltrace2", true, ExportCtf},
  };
  return exporters;
}

Result<Exported> ExportTrace(const Trace& trace, std::string_view format) {
  std::string names;
  for (const TraceExporter& exporter : AllExporters()) {
    if (exporter.name == format) return exporter.run(trace);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", exporter.name);
  }
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "no exporter for '{}'", format), "one of: " + names);
}

Result<Exported> ExportJsonLines(const Trace& trace) {
  DYNAMICCL_TRY(std::string text, FormatTraceJson(trace));
  return Exported{{{"", std::move(text)}}, {}};
}

}  // namespace dynamiccl
