// SPDX-License-Identifier: Apache-2.0
// The collective operations, with NCCL's numbers (ncclFunc_t, src/include/nccl_common.h), and how NCCL counts
// their bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dynamiccl {

enum class Collective : uint8_t {
  kBroadcast = 0,
  kReduce = 1,
  kAllGather = 2,
  kReduceScatter = 3,
  kAllReduce = 4,
  kSendRecv = 5,
  kSend = 6,
  kRecv = 7,
};

// NCCL asks a tuner about the first five collectives only. The others have no choice of algorithm and
// protocol.
inline constexpr int kTunableCollectives = 5;
inline constexpr int kCollectives = 8;

// Returns the name as NCCL spells it: "AllReduce".
std::string_view Name(Collective collective);
// Parses a name in NCCL's spelling or that of nccl-tests ("all_reduce"), in any case. Returns nullopt for an
// unknown name.
std::optional<Collective> ParseCollective(std::string_view name);

// True if the collective combines elements of all ranks by an operator.
constexpr bool Reduces(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter ||
         collective == Collective::kReduce;
}

// Returns the total bytes of a call as NCCL counts them. `count` is the argument of the API function.
// AllGather and ReduceScatter take a count per rank, but NCCL tells a tuner the total over all ranks. For the
// other collectives both are the same.
constexpr uint64_t TotalBytes(Collective collective, uint64_t count, uint64_t element_bytes, int n_ranks) {
  const bool per_rank = collective == Collective::kAllGather || collective == Collective::kReduceScatter;
  return count * element_bytes * (per_rank ? static_cast<uint64_t>(n_ranks) : 1);
}

// Returns the factor of nccl-tests (doc/PERFORMANCE.md) in busbw = algbw * factor. The bus bandwidths of
// different collectives and rank counts can be compared with each other and with the bandwidth of a link.
double BusBandwidthFactor(Collective collective, int n_ranks);

}  // namespace dynamiccl
