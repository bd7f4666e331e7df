// SPDX-License-Identifier: Apache-2.0
// ncclCollConfig_t's algSelection: which algorithms a call may use, in NCCL's grammar (2.31 and later).
//   selection = term {"," term}      any of the terms
//   term      = factor {"+" factor}  all of its factors
//   factor    = ["^"] tag            "^": all but these
// A tag means every name that begins with it, in any case: "RING_LL" means RING_LL and RING_LL128. White
// space is ignored. Example: "RING+^RING_SIMPLE,TREE_LL".
#pragma once

#include <optional>
#include <string_view>

#include "src/collective/collective.h"
#include "src/collective/legal_configs.h"

namespace dynamiccl::hostccl {

// Holds what a selection names for one collective.
struct AlgorithmSelection {
  ConfigMask configs;      // pairs of the cost table
  bool symmetric = false;  // it names a symmetric kernel that NCCL has for the collective; hostccl has none
};

// The named pairs that NCCL has for `collective`; an empty text selects nothing. Nullopt when the text does
// not parse or a term contradicts itself.
std::optional<AlgorithmSelection> ParseAlgorithmSelection(std::string_view text, Collective collective);

}  // namespace dynamiccl::hostccl
