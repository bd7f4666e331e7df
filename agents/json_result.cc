// SPDX-License-Identifier: Apache-2.0
// Implements the option --json for all commands of the program.
#include "agents/json_result.h"

#include <fmt/core.h>

#include <fstream>

namespace dynamiccl::agents {

Status WriteJsonResult(const std::string& json_option, const std::string& json) {
  if (json_option.empty()) return {};
  if (JsonIsTheOutput(json_option)) {
    fmt::print("{}", json);
    return {};
  }
  std::ofstream file(json_option);
  file << json;
  file.close();
  if (!file) return MakeError(ErrorKind::kUnavailable, "{}: cannot be written", json_option);
  return {};
}

}  // namespace dynamiccl::agents
