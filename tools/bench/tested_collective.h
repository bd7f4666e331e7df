// SPDX-License-Identifier: Apache-2.0
// The operations that nccl-tests has programs for, and what its columns mean for each: how a size becomes
// counts, where a rank's part lies when the call is in place, and how a time becomes a bandwidth.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/collective/collective.h"

namespace dynamiccl {

// The first five have Collective's numbers.
enum class TestedCollective : uint8_t {
  kBroadcast = 0,
  kReduce = 1,
  kAllGather = 2,
  kReduceScatter = 3,
  kAllReduce = 4,
  kSendRecv = 5,  // to the next rank, from the one before
  kAlltoAll = 6,
  kGather = 7,
  kScatter = 8,
  kHypercube = 9,  // an all-gather of sends and receives in log2(n) steps
};
inline constexpr int kTestedCollectives = 10;

// nccl-tests' name of the program without _perf: "all_reduce".
std::string_view ProgramName(TestedCollective collective);
// nccl-tests' spelling with or without _perf, or NCCL's ("AllReduce"), in any case.
std::optional<TestedCollective> ParseTestedCollective(std::string_view name);
// "all_reduce, all_gather, ...": for messages.
std::string TestedCollectiveNames();

constexpr bool IsTunable(TestedCollective collective) {
  return static_cast<int>(collective) < kTunableCollectives;
}
constexpr bool Reduces(TestedCollective collective) {
  return collective == TestedCollective::kAllReduce || collective == TestedCollective::kReduce ||
         collective == TestedCollective::kReduceScatter;
}
bool HasRoot(TestedCollective collective);
// nccl-tests does not check in-place results of operations that have no in-place form.
bool HasInPlaceResult(TestedCollective collective);
// Hypercube wants a power of two.
bool RunsOn(TestedCollective collective, int n_ranks);

// In elements. `argument` is the count that the API takes; the offsets are a rank's, times its number.
struct CallLayout {
  uint64_t send = 0;
  uint64_t receive = 0;
  uint64_t argument = 0;
  uint64_t send_in_place = 0;
  uint64_t receive_in_place = 0;
};

// Parts of a rank begin at multiples of 16 bytes, as in nccl-tests.
CallLayout LayoutOf(TestedCollective collective, uint64_t elements, size_t element_bytes, int n_ranks);
// The layout of a call whose API count is `argument`.
CallLayout LayoutOfArgument(TestedCollective collective, uint64_t argument, int n_ranks);

// Bytes that algbw counts for one call with this argument.
double AlgorithmBytes(TestedCollective collective, uint64_t argument, size_t element_bytes, int n_ranks);
// busbw = algbw * factor.
double BusFactor(TestedCollective collective, int n_ranks);

}  // namespace dynamiccl
