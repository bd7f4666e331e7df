// SPDX-License-Identifier: Apache-2.0
// Results of nccl-tests and rccl-tests in other forms than their text: the JSON of nccl-tests' -J, the
// comma-separated tables of rccl-tests' -Z csv, and tables of results of several runs.
#pragma once

#include <istream>
#include <optional>
#include <string>
#include <string_view>

#include "src/collective/collective.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {

// The collective whose name stands in `text`, in any spelling: "all_reduce_perf", "AllGather". An all-to-all
// is NCCL's SendRecv.
std::optional<Collective> TestIn(std::string_view text);

// Whether a file that begins with `head` is such a JSON document or such a table.
bool IsTestJson(std::string_view head);
bool IsTestTable(std::string_view head);

// `path` stands in errors, and names topologies.
Result<Imported> ImportTestJson(std::istream& stream, const std::string& path);

// Columns are found by name: collective (or coll), ranks (or gpus), bytes (or size), and times in
// microseconds: time with inplace, or oop_us and ip_us (or oop_time_us, ip_time_us). nodes may be there. The
// columns system, file, config, nccl, aws_ofi_nccl and job tell runs apart.
Result<Imported> ImportTestTable(std::istream& stream, const std::string& path);

}  // namespace dynamiccl
