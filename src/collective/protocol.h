// SPDX-License-Identifier: Apache-2.0
// NCCL's protocols, with its numbers (NCCL_PROTO_*, src/include/plugin/nccl_tuner.h) and its spellings.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dynamiccl {

// LL sends 4 bytes of data with a 4-byte flag. LL128 sends 120 bytes of data with an 8-byte flag. Simple
// sends whole chunks, each announced by a counter.
enum class Protocol : int8_t { kUndefined = -1, kLL = 0, kLL128 = 1, kSimple = 2 };
inline constexpr int kProtocols = 3;

// Returns the name as NCCL_PROTO spells it: "LL", "LL128", "Simple".
std::string_view Name(Protocol protocol);
// Parses a name in any case. Returns nullopt for an unknown name.
std::optional<Protocol> ParseProtocol(std::string_view name);
// Returns the name as NCCL's TUNING line spells it: "LL", "LL128", "SIMPLE".
std::string_view LogName(Protocol protocol);

}  // namespace dynamiccl
