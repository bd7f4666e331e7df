// SPDX-License-Identifier: Apache-2.0
// Reads and writes demo.json.
#include "tools/report/demo_result.h"

#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

constexpr const char* kOtherJson =
    "`dynamiccl demo` makes a demo.json; what is in another tool's file `dynamiccl why FILE` shows, and "
    "`dynamiccl trace import FILE -o job.ctrace` makes a trace of it";

}  // namespace

Result<DemoResult> ReadDemoResult(const std::string& path) {
  const Result<Json> json = ReadJsonFile(path);
  if (!json) return WithHint(tl::unexpected(json.error()), kOtherJson);
  try {
    if (json->is_object() && json->value("schema", Json()) == 1)
      return nlohmann::json(*json).get<DemoResult>();
  } catch (const nlohmann::json::exception& error) {
    return WithHint(MakeError(ErrorKind::kCorrupt, "{}: {}", path, error.what()), kOtherJson);
  }
  return WithHint(MakeError(ErrorKind::kCorrupt, "{}: not a demo result of schema 1", path), kOtherJson);
}

Status WriteDemoResult(const std::string& path, const DemoResult& result) {
  return WriteJsonFile(path, Json(nlohmann::json(result)));
}

}  // namespace dynamiccl
