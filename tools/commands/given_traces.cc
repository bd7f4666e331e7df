// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/given_traces.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "traces/format/trace_files.h"

namespace dynamiccl {

Result<Trace> ReadGivenTraces(const std::vector<std::string>& paths) {
  DYNAMICCL_TRY(Trace trace, ReadTraceFiles(paths));
  if (trace.missing().any()) spdlog::warn("{}: {}", fmt::join(paths, ", "), Describe(trace.missing()));
  return trace;
}

}  // namespace dynamiccl
