// SPDX-License-Identifier: Apache-2.0
// JSON as the commands write it: keys in the order of writing, "schema" first.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "src/base/status.h"

namespace dynamiccl {

using Json = nlohmann::ordered_json;

// One document on standard output.
void PrintJson(const Json& json);

// Replaces the file in one step: a reader sees the old content or the new.
Status WriteJsonFile(const std::string& path, const Json& json);
Status WriteTextFile(const std::string& path, const std::string& text);

Result<Json> ReadJsonFile(const std::string& path);
Result<std::string> ReadTextFile(const std::string& path);

}  // namespace dynamiccl
