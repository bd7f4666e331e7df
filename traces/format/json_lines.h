// SPDX-License-Identifier: Apache-2.0
// What our text formats share: one JSON object a line, and an end line with a count and a hash, so that a cut
// or damaged file is never taken for a whole one. Private to traces/format: it shows nlohmann's types.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/status.h"

namespace dynamiccl {

using Json = nlohmann::json;

// What is wrong with a line. Thrown by the field readers below and by callbacks of ReadJsonLines, and caught
// by the latter together with nlohmann's exceptions: none leaves this library.
struct LineError {
  std::string what;
};

// Appends the object and a newline. Numbers that are not finite and texts that are no UTF-8 have no JSON form
// and are an error.
Status AppendJsonLine(std::string& text, const Json& json);
// {"kind":"end","<counted>":count,"xxh3":hash of `text` so far}
Status AppendEndLine(std::string& text, const char* counted, size_t count);

// The two callbacks of a format: the first line, and every line but the first and the end line.
struct JsonLineCallbacks {
  std::function<void(const Json&)> header;
  std::function<void(const Json&)> line;
  const char* counted;            // name of the end line's count
  std::function<size_t()> count;  // what it must say
};
// Errors read "<name>:<line>: <what>".
Status ReadJsonLines(std::string_view text, const std::string& name, const JsonLineCallbacks& callbacks);

// The value of a key; throws LineError or nlohmann's exception where it is missing, of another type or out of
// range.
int64_t IntegerField(const Json& json, const char* name, int64_t minimum, int64_t maximum);
uint64_t UnsignedField(const Json& json, const char* name);
double NumberField(const Json& json, const char* name);
// Throws unless `json` is the header line of `magic` in `version`.
void CheckMagic(const Json& json, const std::string& magic, int version, const char* what);

Result<std::string> ReadWholeFile(const std::string& path);
Status WriteWholeFile(const std::string& path, std::string_view content);

}  // namespace dynamiccl
