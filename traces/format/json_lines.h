// SPDX-License-Identifier: Apache-2.0
// The parts that DynamICCL's text formats share: one JSON object per line, and an end line with a count and a
// hash. A cut or damaged file is therefore never taken for a complete one. Private to traces/format, because
// it shows nlohmann's types.
//
// A file is
//   {"magic":"dynamiccl-trace","version":1, ...}
//   {"kind": ...}                                  any number of lines
//   {"kind":"end","records":2,"xxh3":"..."}
#pragma once

#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/status.h"

namespace dynamiccl {

using Json = nlohmann::json;

// The fault of a line. The field readers below and callbacks of ReadJsonLines throw it. ReadJsonLines catches
// it, and nlohmann's exceptions, so none leaves this library.
struct LineError {
  std::string what;
};

// Returns the XXH3 (64 bits, seed 0) of a text as 16 hexadecimal digits.
std::string TextHashOf(std::string_view text);
// Appends the object and a newline. Numbers that are not finite and texts that are not UTF-8 have no JSON
// form and are an error.
Status AppendJsonLine(std::string& text, const Json& json);
// Appends {"kind":"end","<counted>":count,"xxh3":hash of `text` so far}.
Status AppendEndLine(std::string& text, const char* counted, size_t count);

// A format passes these to ReadJsonLines: functions for the first line and for every further line up to the
// end line, and how records are counted.
struct JsonLineCallbacks {
  // Throws LineError if the first line is not the format's.
  std::function<void(const Json&)> header;
  // Takes each further line; throws LineError if the line is wrong.
  std::function<void(const Json&)> line;
  const char* counted;            // key of the count in the end line
  std::function<size_t()> count;  // the number that the end line must give
};
// Reads a whole text. Errors read "<name>:<line>: <what>". If there is an error, callbacks may have run
// before it.
Status ReadJsonLines(std::string_view text, const std::string& name, const JsonLineCallbacks& callbacks);

// Each returns the value of a key. It throws LineError or nlohmann's exception where the key is missing, or
// its value is of another type or out of range.
int64_t IntegerField(const Json& json, const char* name, int64_t minimum, int64_t maximum);
uint64_t UnsignedField(const Json& json, const char* name);
double NumberField(const Json& json, const char* name);
// Throws unless `json` is the header line of `magic` in `version`. `what` names the format in the message.
void CheckMagic(const Json& json, const std::string& magic, int version, const char* what);
// Does the same for a format of which this build reads several versions. Returns the version.
int CheckMagic(const Json& json, const std::string& magic, std::initializer_list<int> versions,
               const char* what);

// Reads a regular file into memory. kNotFound if it cannot be opened, kUnavailable if reading fails.
Result<std::string> ReadWholeFile(const std::string& path);
// Writes a file beside `path` and renames it. On error the old file stays, and nothing of the new file
// remains. What cannot be renamed, such as a pipe, a device or a link, is written directly.
Status WriteWholeFile(const std::string& path, std::string_view content);

}  // namespace dynamiccl
