// SPDX-License-Identifier: Apache-2.0
// The operations for which nccl-tests has programs, and what its columns mean for each: how a size becomes
// counts, where a rank's part lies when the call is in place, and how a time becomes a bandwidth.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/collective/collective.h"

namespace dynamiccl {

// The first five have the numbers of Collective.
enum class TestedCollective : uint8_t {
  kBroadcast = 0,
  kReduce = 1,
  kAllGather = 2,
  kReduceScatter = 3,
  kAllReduce = 4,
  // Sends to the next rank and receives from the previous one.
  kSendRecv = 5,
  kAlltoAll = 6,
  kGather = 7,
  kScatter = 8,
  // An all-gather of sends and receives in log2(n) steps.
  kHypercube = 9,
};
inline constexpr int kTestedCollectives = 10;

// nccl-tests' name of the program without "_perf", for example "all_reduce".
std::string_view ProgramName(TestedCollective collective);
// Accepts nccl-tests' spelling with or without "_perf", or NCCL's ("AllReduce"), in any case.
std::optional<TestedCollective> ParseTestedCollective(std::string_view name);
// "broadcast, reduce, ...", for messages.
std::string TestedCollectiveNames();

// Whether NCCL asks a tuner about the operation.
constexpr bool IsTunable(TestedCollective collective) {
  return static_cast<int>(collective) < kTunableCollectives;
}
constexpr bool Reduces(TestedCollective collective) {
  return collective == TestedCollective::kAllReduce || collective == TestedCollective::kReduce ||
         collective == TestedCollective::kReduceScatter;
}
bool HasRoot(TestedCollective collective);
// Whether the data of an in-place call can be checked. sendrecv and alltoall have no in-place form, and
// nccl-tests does not check them either.
bool HasInPlaceResult(TestedCollective collective);
// Whether the operation can run on `n_ranks` ranks: a hypercube needs a power of two.
bool RunsOn(TestedCollective collective, int n_ranks);

// Sizes of a call in elements. `argument` is the count that the API takes. The in-place offsets are to be
// multiplied by the rank.
struct CallLayout {
  uint64_t send = 0;
  uint64_t receive = 0;
  uint64_t argument = 0;
  uint64_t send_in_place = 0;
  uint64_t receive_in_place = 0;
};

// The layout for a buffer of `elements`. Parts of a rank begin at multiples of 16 bytes, as in nccl-tests.
CallLayout LayoutOf(TestedCollective collective, uint64_t elements, size_t element_bytes, int n_ranks);
// The layout of a call whose API count is `argument`.
CallLayout LayoutOfArgument(TestedCollective collective, uint64_t argument, int n_ranks);

// Bytes that algbw counts for one call with this argument.
double AlgorithmBytes(TestedCollective collective, uint64_t argument, size_t element_bytes, int n_ranks);
// busbw = algbw * factor (nccl-tests, doc/PERFORMANCE.md).
double BusFactor(TestedCollective collective, int n_ranks);

}  // namespace dynamiccl
