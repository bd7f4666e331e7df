// SPDX-License-Identifier: Apache-2.0
// NCCL_CTA_POLICY as NCCL reads it (src/init.cc, getEnvCtaPolicyOnce).
#pragma once

#include <optional>
#include <string_view>

namespace dynamiccl {

// NCCL_CTA_POLICY_* of ncclConfig_t: "0", "1", "2", or DEFAULT, EFFICIENCY and ZERO with '|' between, in any
// case. Empty when nothing in the text is known: NCCL then goes by the program's configuration.
std::optional<int> ParseCtaPolicy(std::string_view text);

}  // namespace dynamiccl
