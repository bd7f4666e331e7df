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

// NCCL asks a tuner about the first five only: the others have no choice of algorithm and protocol.
inline constexpr int kTunableCollectives = 5;
inline constexpr int kCollectives = 8;

// Returns NCCL's spelling: "AllReduce".
std::string_view Name(Collective collective);
// Accepts NCCL's spelling and that of nccl-tests ("all_reduce"), in any case. Nullopt for an unknown name.
std::optional<Collective> ParseCollective(std::string_view name);

// True if the collective combines elements of all ranks by an operator.
constexpr bool Reduces(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter ||
         collective == Collective::kReduce;
}

// NCCL's total bytes of a call, computed from the count argument of its API function. AllGather and
// ReduceScatter take a count per rank, while the size that NCCL gives a tuner is the total over all ranks;
// the other collectives use one count for both.
constexpr uint64_t TotalBytes(Collective collective, uint64_t count, uint64_t element_bytes, int n_ranks) {
  const bool per_rank = collective == Collective::kAllGather || collective == Collective::kReduceScatter;
  return count * element_bytes * (per_rank ? static_cast<uint64_t>(n_ranks) : 1);
}

// busbw = algbw * factor, as nccl-tests defines it (doc/PERFORMANCE.md): the factor makes the bandwidths of
// different collectives and rank counts comparable with that of a link.
double BusBandwidthFactor(Collective collective, int n_ranks);

}  // namespace dynamiccl
