// SPDX-License-Identifier: Apache-2.0
// Which release of NCCL has which environment variable. nccl_variables.def is the table.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tests/real_nccl/nccl_release.h"

namespace dynamiccl {

// The releases that have a variable. No `since`: the oldest release of the table has it. No `until`: the
// newest does.
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

// Whether the table knows what a release has: statements about older and newer releases would be guesses.
bool TableReaches(const real_nccl::NcclRelease& release);
// "2.18.1 to 2.32.3".
std::string ReachOfTable();

// The known variable that a mistyped name most likely means; empty where none is near: a plugin's or a
// program's own variable may have any name. Near is a distance of one or two letters.
std::string NearestNcclVariable(std::string_view name);

// Whether every process that makes a communicator of several ranks reads the variable and logs its value, so
// that a whole log without such a line shows that the process does not have it. Seen in runs of the releases
// (docs/results/receipts.md); false for releases outside of those.
bool IsReadAtInit(std::string_view name, const real_nccl::NcclRelease& release);

}  // namespace dynamiccl
