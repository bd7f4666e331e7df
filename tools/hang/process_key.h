// SPDX-License-Identifier: Apache-2.0
// Tells whether two sections, of one file or of two, are of the same process.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "traces/format/trace.h"

namespace dynamiccl {

// Rank, process id, host and the moment at which the process began to record.
using ProcessKey = std::tuple<int32_t, int64_t, std::string, int64_t>;

inline ProcessKey KeyOf(const TraceSection& section) {
  return {section.rank, section.process_id, section.host, section.opened.realtime_ns};
}

}  // namespace dynamiccl
