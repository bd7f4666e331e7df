// SPDX-License-Identifier: Apache-2.0
// Imports one of the sample traces in PyTorch's Kineto format and sums up its calls.
#include "tools/demo/demo_steps.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "traces/format/trace_calls.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

// Paths of the sample traces. They are sorted, so that every demo shows the same sample.
std::vector<std::string> SampleFiles(const DemoSession& session) {
  const std::string folder = FindDataFile(session.installation(), "traces/samples");
  std::vector<std::string> files;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, ignored)) {
    const std::string path = entry.path().string();
    if (path.ends_with(".json") || path.ends_with(".json.gz")) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Status AddImportedSample(DemoSession& session) {
  const std::vector<std::string> files = SampleFiles(session);
  if (files.empty()) return {};
  DYNAMICCL_TRY(const Imported imported, ImportFile(files.front(), "kineto"));
  if (!imported.trace || imported.trace->sections.empty()) return {};
  std::map<std::string, ImportedRow> rows;
  for (const TraceCall& call : CallsOf(imported.trace->sections.front()).calls) {
    const std::string name(Name(call.issued.call.collective));
    ImportedRow& row = rows[name];
    row.source = fs::path(files.front()).filename().string();
    row.collective = name;
    ++row.calls;
    row.bytes += call.issued.call.bytes;
    row.recorded_us += static_cast<double>(std::max<int64_t>(call.issued.duration_ns, 0)) * 1e-3;
  }
  for (auto& [name, row] : rows) session.result().imported.push_back(std::move(row));
  return {};
}

}  // namespace dynamiccl
