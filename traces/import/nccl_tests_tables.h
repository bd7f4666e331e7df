// SPDX-License-Identifier: Apache-2.0
// Results of nccl-tests and rccl-tests in forms other than their text output: the JSON of nccl-tests' -J, the
// comma-separated tables of rccl-tests' -Z csv, and tables with results of several runs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/collective/collective.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {

// A program of nccl-tests or rccl-tests, or the operation that it tests.
struct NamedTest {
  std::string_view name;  // without '_' and '-'
  // Not set for a test that is not one of NCCL's own collectives, such as gather or hypercube.
  std::optional<Collective> collective;
};

// The test whose name stands in `text`, in any spelling: "all_reduce_perf", "AllGather". An all-to-all is
// NCCL's SendRecv. Null for a text without such a name.
const NamedTest* NamedTestIn(std::string_view text);
// Returns the collective of the test whose name stands in `text`; nothing without one.
std::optional<Collective> TestIn(std::string_view text);

// True if a file that begins with `head` is a JSON document of nccl-tests, or a table with results.
bool IsTestJson(std::string_view head);
bool IsTestTable(std::string_view head);

// Error message and hint for a file that does not name its test.
inline constexpr char kUnnamedTest[] =
    "neither the file's name nor its content names the test (all_reduce_perf, ...)";
inline constexpr char kNameTheTest[] = "name its collective: --collective AllReduce";

// Reads a JSON document of nccl-tests. Topologies are named after the file at `path`, and errors contain the
// path.
Result<Imported> ImportTestJson(GzipStream& stream, const std::string& path, const ImportOptions& options);

// Reads a table. Columns are found by name: collective (or coll), ranks (or gpus), bytes (or size), and times
// in microseconds, which are time with inplace, or oop_us and ip_us (or oop_time_us, ip_time_us). nodes is
// optional. The columns system, file, config, nccl, aws_ofi_nccl and job distinguish runs. Example:
//     collective,ranks,bytes,time,inplace
//     AllReduce,8,1048576,93.2,0
Result<Imported> ImportTestTable(GzipStream& stream, const std::string& path);

}  // namespace dynamiccl
