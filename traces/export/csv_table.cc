// SPDX-License-Identifier: Apache-2.0
// One row for each call, in the order of kHeader; absent values are empty fields.
#include <fmt/format.h>

#include "traces/export/trace_export.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

constexpr const char* kHeader =
    "rank,communicator,ranks,call_number,index_in_group,group_size,collective,data_type,op,bytes,root_or_"
    "peer,issued_ns,"
    "duration_ns,stream,step,stage,phase,role,algorithm,protocol,channels\n";

std::string NumberOrEmpty(int64_t value) {
  return value < 0 ? std::string() : std::to_string(value);
}

// No field needs quotes: all are numbers and names of the vocabulary.
std::string Row(const TraceCall& call) {
  const IssuedCall& issued = call.issued;
  const CollectiveCall& c = issued.call;
  std::string row =
      fmt::format("{},{:#x},{},{},{},{},{},{},{},{},{},{},{},{},{}", issued.rank, c.communicator, c.n_ranks,
                  c.call_number, c.index_in_group, c.group_size, Name(c.collective), Name(c.data_type),
                  Name(c.op), c.bytes, NumberOrEmpty(issued.root_or_peer), issued.issued_ns,
                  NumberOrEmpty(issued.duration_ns), call.stream, NumberOrEmpty(call.step));
  const auto known = [](auto label) {
    return label == decltype(label)::kUnknown ? std::string_view() : Name(label);
  };
  row += fmt::format(",{},{},{}", known(issued.labelled_stage), known(issued.labelled_phase),
                     known(issued.labelled_role));
  if (!call.decision) return row + ",,,\n";
  const CollectiveConfig& config = call.decision->config;
  const bool chosen = !config.leaves_nccl_alone();
  return row + fmt::format(",{},{},{}\n", chosen ? Name(config.algorithm) : "",
                           chosen ? Name(config.protocol) : "",
                           config.channels == 0 ? "" : std::to_string(config.channels));
}

}  // namespace

Result<Exported> ExportCsv(const Trace& trace) {
  std::string text = kHeader;
  for (const TraceSection& section : trace.sections) {
    for (const TraceCall& call : CallsOf(section).calls) text += Row(call);
  }
  return Exported{{{"", std::move(text)}}, {}};
}

}  // namespace dynamiccl
