// SPDX-License-Identifier: Apache-2.0
// Reads and writes NCCL's choices (.nccl-choices): one JSON object per line, with an end line that carries a
// count and a hash. Content that several releases have in common is written once. Grammar:
// docs/formats/nccl_choices.md.
#pragma once

#include <string>
#include <string_view>

#include "src/base/status.h"
#include "traces/format/nccl_choices.h"

namespace dynamiccl {

// Returns the text of a file. Costs are kept to six digits.
Result<std::string> FormatNcclChoices(const NcclChoices& choices);
// Writes a file beside `path` and renames it, so that `path` is never half-written.
Status WriteNcclChoices(const std::string& path, const NcclChoices& choices);

// Reads a text that FormatNcclChoices has written. Errors read "<name>:<line>: <what>".
Result<NcclChoices> ParseNcclChoices(std::string_view text, const std::string& name);
Result<NcclChoices> ReadNcclChoices(const std::string& path);

}  // namespace dynamiccl
