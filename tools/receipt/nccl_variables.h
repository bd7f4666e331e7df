// SPDX-License-Identifier: Apache-2.0
// Knows which release of NCCL has which environment variable. nccl_variables.def is the table.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tests/real_nccl/nccl_release.h"

namespace dynamiccl {

// The first and the last release that have a variable. `since` is empty if the table's oldest release has it,
// `until` if the newest has it.
struct NcclVariable {
  std::string_view name;
  std::optional<real_nccl::NcclRelease> since;
  std::optional<real_nccl::NcclRelease> until;

  bool In(const real_nccl::NcclRelease& release) const {
    return (!since || release >= *since) && (!until || release <= *until);
  }
};

// Returns nothing for a name that no release of the table has.
std::optional<NcclVariable> FindNcclVariable(std::string_view name);

// True if the table covers the release. Nothing is known about the variables of older and newer releases.
bool TableReaches(const real_nccl::NcclRelease& release);
// "2.18.1 to 2.32.3".
std::string ReachOfTable();

// Returns the known variable that differs from a mistyped name in one or two letters. Empty if there is none:
// the name may belong to a plugin or a program.
std::string NearestNcclVariable(std::string_view name);

// True if every process that creates a communicator of several ranks reads this variable and logs its value.
// A whole log without such a line then shows that the process does not have the variable. The table comes
// from runs of the releases (docs/results/receipts.md); the answer is false for other releases.
bool IsReadAtInit(std::string_view name, const real_nccl::NcclRelease& release);

}  // namespace dynamiccl
