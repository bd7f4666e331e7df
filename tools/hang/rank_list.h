// SPDX-License-Identifier: Apache-2.0
// Ranks as a reader wants them: "rank 3", "ranks 0 to 2, 5 and 7".
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace dynamiccl {

// In any order; each is named once. "no rank" for none.
std::string RankList(std::span<const int32_t> ranks);

}  // namespace dynamiccl
