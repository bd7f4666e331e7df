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
  kAllToAll = 8,
  kScatter = 9,
  kGather = 10,
};

// NCCL asks a tuner about the first five collectives only. The others have no choice of algorithm and
// protocol.
inline constexpr int kTunableCollectives = 5;
inline constexpr int kCollectives = 11;

// Returns the name as NCCL spells it: "AllReduce", "AlltoAll".
std::string_view Name(Collective collective);
// Parses a name in NCCL's spelling or that of nccl-tests ("all_reduce"), in any case. Returns nullopt for an
// unknown name.
std::optional<Collective> ParseCollective(std::string_view name);

// True if the collective combines elements of all ranks by an operator.
constexpr bool Reduces(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter ||
         collective == Collective::kReduce;
}

// True for a call that one of two ranks issues, and that needs its counterpart on the other.
constexpr bool IsOneSided(Collective collective) {
  return collective == Collective::kSend || collective == Collective::kRecv;
}

// True for a call that every rank issues and that the library implements with sends and receives.
constexpr bool IsExchange(Collective collective) {
  return collective == Collective::kSendRecv || collective >= Collective::kAllToAll;
}

// Returns the total bytes of a call as NCCL counts them. `count` is the argument of the API function.
// AllGather, ReduceScatter, AlltoAll, Scatter and Gather take the count of one rank's part, while the total
// has the parts of all ranks. For the other collectives both are the same.
constexpr uint64_t TotalBytes(Collective collective, uint64_t count, uint64_t element_bytes, int n_ranks) {
  const bool per_rank = collective == Collective::kAllGather || collective == Collective::kReduceScatter ||
                        collective >= Collective::kAllToAll;
  return count * element_bytes * (per_rank ? static_cast<uint64_t>(n_ranks) : 1);
}

// Returns the factor of nccl-tests (doc/PERFORMANCE.md) in busbw = algbw * factor. The bus bandwidths of
// different collectives and rank counts can be compared with each other and with the bandwidth of a link.
double BusBandwidthFactor(Collective collective, int n_ranks);

}  // namespace dynamiccl
