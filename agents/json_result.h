// SPDX-License-Identifier: Apache-2.0
// Where the result of a command goes as JSON: nowhere, standard output or a file.
#pragma once

#include <string>

#include "src/base/status.h"

namespace dynamiccl::agents {

// Of a --json option: standard output then holds the JSON and nothing else.
inline bool JsonIsTheOutput(const std::string& json_option) {
  return json_option == "-";
}

// `json` to what the option names: "-" is standard output, "" nothing, else a file, which is replaced.
// kUnavailable where it cannot be written.
Status WriteJsonResult(const std::string& json_option, const std::string& json);

}  // namespace dynamiccl::agents
