// SPDX-License-Identifier: Apache-2.0
// Writes a cell (the result of one canary run) as JSON, for `canary --json` and for the cache of results, and
// reads it back from the cache.
#pragma once

#include <optional>

#include "tools/canary/cell.h"
#include "tools/report/json_output.h"

namespace dynamiccl {

// Returns the cell as JSON. docs/canary.md lists the keys.
Json CellJson(const Cell& cell);
// Returns the cell as the cache keeps it: with `log`, which is too long for `canary --json`.
Json KeptCellJson(const Cell& cell);
// Reads what KeptCellJson wrote. Returns nothing if a key is missing or its value has the wrong type.
std::optional<Cell> CellFromJson(const Json& json);

}  // namespace dynamiccl
