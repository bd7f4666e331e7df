// SPDX-License-Identifier: Apache-2.0
// Writes JSON as all commands do: keys in the order of writing, "schema" first. Also reads and writes whole
// text files.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "src/base/status.h"

namespace dynamiccl {

using Json = nlohmann::ordered_json;

// Prints one document, indented, on standard output.
void PrintJson(const Json& json);

// Replaces the file in one step: a reader sees either the old content or the new. Bytes that are not UTF-8
// become replacement characters.
Status WriteJsonFile(const std::string& path, const Json& json);
// Replaces the file in one step. It is an error (kInvalidArgument) when the folder cannot be written.
Status WriteTextFile(const std::string& path, const std::string& text);

// Reads and parses a file. An error is kNotFound for a file that cannot be read, kCorrupt for text that is
// not JSON.
Result<Json> ReadJsonFile(const std::string& path);
// The whole content of a regular file.
Result<std::string> ReadTextFile(const std::string& path);

}  // namespace dynamiccl
