// SPDX-License-Identifier: Apache-2.0
// Writes the result of a command as JSON: nowhere, to standard output, or to a file.
#pragma once

#include <string>

#include "src/base/status.h"

namespace dynamiccl::agents {

// True if standard output holds the JSON and must hold nothing else. `json_option` is the value of --json.
inline bool JsonIsTheOutput(const std::string& json_option) {
  return json_option == "-";
}

// Writes `json` to where the option points: "-" is standard output, "" nowhere, anything else a file, which
// is replaced. Returns kUnavailable if the file cannot be written.
Status WriteJsonResult(const std::string& json_option, const std::string& json);

}  // namespace dynamiccl::agents
