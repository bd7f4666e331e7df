// SPDX-License-Identifier: Apache-2.0
// Reads and writes demo.json.
#include "tools/report/demo_result.h"

#include "tools/report/json_output.h"

namespace dynamiccl {

Result<DemoResult> ReadDemoResult(const std::string& path) {
  DYNAMICCL_TRY(const Json json, ReadJsonFile(path));
  try {
    if (json.at("schema").get<int>() == 1) return nlohmann::json(json).get<DemoResult>();
  } catch (const nlohmann::json::exception& error) {
    return MakeError(ErrorKind::kCorrupt, "{}: {}", path, error.what());
  }
  return WithHint(MakeError(ErrorKind::kCorrupt, "{}: not a demo result of schema 1", path),
                  "make it again with `dynamiccl demo`");
}

Status WriteDemoResult(const std::string& path, const DemoResult& result) {
  return WriteJsonFile(path, Json(nlohmann::json(result)));
}

}  // namespace dynamiccl
