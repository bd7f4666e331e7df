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

// A plan that fits into a message, as far as it goes the same: 160 keys do with all trials. The last keys
// lose their trials first; where even the choices of 650 keys are too many, those that are not listed are
// left to NCCL, and so are the last.
TablePlan Fitting(TablePlan plan);
// Of a plan that fits.
std::vector<std::byte> EncodePlan(const TablePlan& plan);
std::optional<TablePlan> DecodePlan(std::span<const std::byte> bytes);

}  // namespace dynamiccl
