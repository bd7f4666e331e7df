// SPDX-License-Identifier: Apache-2.0
// Collects what a release chooses by itself in a world, as data. One run without a tuner gives the choices
// and the graphs that NCCL's search found. A second run with a tuner that changes nothing gives the cost
// tables.
#pragma once

#include <string>

#include "tests/real_nccl/nccl_release.h"
#include "traces/format/nccl_choices.h"

namespace dynamiccl::real_nccl {

// Returns the sizes from 1 KiB to 4 GiB, by powers of 2.
std::vector<size_t> ChoiceSizes();

// Adds the world to `choices`, or replaces it there. Returns what went wrong, or an empty string. `scratch`
// must exist.
std::string AddOwnChoices(const NcclRelease& release, const NcclWorld& world,
                          const std::vector<size_t>& sizes, const std::string& scratch, NcclChoices* choices);

}  // namespace dynamiccl::real_nccl
