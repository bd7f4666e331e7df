// SPDX-License-Identifier: Apache-2.0
// The JSON-lines form of a .ctrace file: the same sections and records as text. Writing and reading lose
// nothing.
#pragma once

#include <string>
#include <string_view>

#include "src/base/status.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Returns the text. Fields that a kind of record does not use are left out where they have their empty value.
Result<std::string> FormatTraceJson(const Trace& trace);
// Reads a text that FormatTraceJson has written, strictly. Errors read "<name>:<line>: <what>".
Result<Trace> ParseTraceJson(std::string_view text, const std::string& name);

}  // namespace dynamiccl
