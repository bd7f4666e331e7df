// SPDX-License-Identifier: Apache-2.0
// Reads and writes NCCL's choices (.nccl-choices): text of one JSON object a line with an end line that
// carries a count and a hash. What several releases have in common is written once. Grammar:
// docs/formats/nccl_choices.md.
#pragma once

#include <string>
#include <string_view>

#include "src/base/status.h"
#include "traces/format/nccl_choices.h"

namespace dynamiccl {

// Costs are kept to six digits.
Result<std::string> FormatNcclChoices(const NcclChoices& choices);
Status WriteNcclChoices(const std::string& path, const NcclChoices& choices);

// `name` stands in errors, which read "<name>:<line>: <what>".
Result<NcclChoices> ParseNcclChoices(std::string_view text, const std::string& name);
Result<NcclChoices> ReadNcclChoices(const std::string& path);

}  // namespace dynamiccl
