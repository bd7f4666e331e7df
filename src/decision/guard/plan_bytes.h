// SPDX-License-Identifier: Apache-2.0
// A plan as bytes, as it travels with a table version. Grammar: docs/formats/table_plan.md. The message that
// carries it is authenticated; what is not understood completely is refused, and then no rank uses the
// version.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "src/decision/guard/table_plan.h"

namespace dynamiccl {

// Keys of more than 160 do not fit into a message with all trials: the later ones are left out.
std::vector<std::byte> EncodePlan(const TablePlan& plan);
std::optional<TablePlan> DecodePlan(std::span<const std::byte> bytes);

}  // namespace dynamiccl
