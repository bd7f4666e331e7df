// SPDX-License-Identifier: Apache-2.0
// Traces for other tools: a timeline for Perfetto and chrome://tracing, and a table for spreadsheets and
// pandas.
#pragma once

#include <string>

#include "traces/format/trace.h"

namespace dynamiccl {

// Chrome trace JSON: a process for each rank, a thread for each communicator, a slice for each call (an
// instant where no duration is known), arrows between the ranks of the same collective, a marker for each
// training step.
std::string ExportChromeTimeline(const Trace& trace);

// RFC 4180 with a header line; one row a call, empty where something is not known.
std::string ExportCsv(const Trace& trace);

}  // namespace dynamiccl
