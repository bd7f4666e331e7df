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

// The first five values equal those of the enum Collective.
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
  // An all-gather that is made of sends and receives, in log2(n) steps.
  kHypercube = 9,
};
inline constexpr int kTestedCollectives = 10;

// nccl-tests' name of the program without "_perf", for example "all_reduce".
std::string_view ProgramName(TestedCollective collective);
// Parses an operation's name in any case: nccl-tests' name with or without "_perf", or NCCL's ("AllReduce").
std::optional<TestedCollective> ParseTestedCollective(std::string_view name);
// The names of all operations, "broadcast, reduce, ...", for messages.
std::string TestedCollectiveNames();

// True if NCCL asks a tuner plugin about the operation.
constexpr bool IsTunable(TestedCollective collective) {
  return static_cast<int>(collective) < kTunableCollectives;
}
constexpr bool Reduces(TestedCollective collective) {
  return collective == TestedCollective::kAllReduce || collective == TestedCollective::kReduce ||
         collective == TestedCollective::kReduceScatter;
}
bool HasRoot(TestedCollective collective);
// True if the data of an in-place call can be checked. sendrecv and alltoall have no in-place form, and
// nccl-tests does not check them either.
bool HasInPlaceResult(TestedCollective collective);
// True if the operation can run on `n_ranks` ranks: a hypercube needs a power of two.
bool RunsOn(TestedCollective collective, int n_ranks);

// Sizes of a call in elements. `argument` is the count that NCCL's function takes. Multiply the in-place
// offsets by the rank.
struct CallLayout {
  uint64_t send = 0;
  uint64_t receive = 0;
  uint64_t argument = 0;
  uint64_t send_in_place = 0;
  uint64_t receive_in_place = 0;
};

// Returns the sizes of a call whose larger buffer has `elements`. The part of each rank begins at a multiple
// of 16 bytes, as in nccl-tests.
CallLayout LayoutOf(TestedCollective collective, uint64_t elements, size_t element_bytes, int n_ranks);
// Returns the sizes of a call for which NCCL's function gets the count `argument`.
CallLayout LayoutOfArgument(TestedCollective collective, uint64_t argument, int n_ranks);

// Bytes that nccl-tests' algbw counts for one call whose count is `argument`.
double AlgorithmBytes(TestedCollective collective, uint64_t argument, size_t element_bytes, int n_ranks);
// The factor in busbw = algbw * factor (nccl-tests, doc/PERFORMANCE.md).
double BusFactor(TestedCollective collective, int n_ranks);

}  // namespace dynamiccl
