// SPDX-License-Identifier: Apache-2.0
// A cell as JSON: for `canary --json`, and for the cache of cells, which reads it back.
#pragma once

#include <optional>

#include "tools/canary/cell.h"
#include "tools/report/json_output.h"

namespace dynamiccl {

// docs/canary.md lists the keys.
Json CellJson(const Cell& cell);
// Returns nothing if a key is missing or of another kind.
std::optional<Cell> CellFromJson(const Json& json);

}  // namespace dynamiccl
