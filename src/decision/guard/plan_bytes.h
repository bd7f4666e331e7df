// SPDX-License-Identifier: Apache-2.0
// A table plan as bytes, as it travels with a table version. Grammar: docs/formats/table_plan.md. The message
// that carries it is authenticated. A reader refuses a plan that it does not understand completely; then no
// rank uses the version.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "src/decision/guard/table_plan.h"

namespace dynamiccl {

// Returns the plan, shortened where it must be to fit into one message of 7,936 bytes. 213 keys fit with all
// eight trials. Of a longer plan the last keys lose their trials first. More than 608 keys do not fit even
// without trials: then keys that are not listed are left to NCCL, and so are the last keys.
TablePlan Fitting(TablePlan plan);
// Returns the bytes of a plan that fits.
std::vector<std::byte> EncodePlan(const TablePlan& plan);
// Reads such bytes; nothing if they are cut short, damaged, of another version, or name something that NCCL
// does not have.
std::optional<TablePlan> DecodePlan(std::span<const std::byte> bytes);

}  // namespace dynamiccl
