// SPDX-License-Identifier: Apache-2.0
// What a release chooses by itself in a world, as data: one run alone, with the graphs that NCCL's search
// found, and one with a tuner that writes down the cost tables.
#pragma once

#include <string>

#include "tests/real_nccl/nccl_release.h"
#include "traces/format/nccl_choices.h"

namespace dynamiccl::real_nccl {

// 1 KiB to 4 GiB, by powers of 2.
std::vector<size_t> ChoiceSizes();

// Adds the world to `choices`, or replaces it there. Says what went wrong; empty when nothing did. `scratch`
// must exist.
std::string AddOwnChoices(const NcclRelease& release, const NcclWorld& world,
                          const std::vector<size_t>& sizes, const std::string& scratch, NcclChoices* choices);

}  // namespace dynamiccl::real_nccl
