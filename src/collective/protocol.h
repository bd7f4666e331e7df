// SPDX-License-Identifier: Apache-2.0
// The protocols, with NCCL's numbers (NCCL_PROTO_*, src/include/plugin/nccl_tuner.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dynamiccl {

enum class Protocol : int8_t { kUndefined = -1, kLL = 0, kLL128 = 1, kSimple = 2 };
inline constexpr int kProtocols = 3;

// As NCCL_PROTO spells it: "LL", "LL128", "Simple".
std::string_view Name(Protocol protocol);
// Any case.
std::optional<Protocol> ParseProtocol(std::string_view name);
// As NCCL's TUNING line spells it: "LL", "LL128", "SIMPLE".
std::string_view LogName(Protocol protocol);

}  // namespace dynamiccl
