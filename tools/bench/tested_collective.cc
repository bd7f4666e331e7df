// SPDX-License-Identifier: Apache-2.0
// The rules of nccl-tests for each operation.
#include "tools/bench/tested_collective.h"

#include <algorithm>
#include <bit>
#include <cctype>

namespace dynamiccl {
namespace {

using enum TestedCollective;

constexpr std::string_view kNames[kTestedCollectives] = {
    "broadcast", "reduce",   "all_gather", "reduce_scatter", "all_reduce",
    "sendrecv",  "alltoall", "gather",     "scatter",        "hypercube"};

// Lower case without underscores, so that "all_reduce" and "AllReduce" are equal.
std::string Folded(std::string_view name) {
  std::string folded;
  for (const char c : name) {
    if (c != '_') folded += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return folded;
}

// True if the send or the receive buffer has one part for every rank.
bool InParts(TestedCollective collective) {
  switch (collective) {
    case kAllGather:
    case kReduceScatter:
    case kAlltoAll:
    case kGather:
    case kScatter:
    case kHypercube:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string_view ProgramName(TestedCollective collective) {
  return kNames[static_cast<size_t>(collective)];
}

std::optional<TestedCollective> ParseTestedCollective(std::string_view name) {
  constexpr std::string_view kSuffix = "_perf";
  if (name.ends_with(kSuffix)) name.remove_suffix(kSuffix.size());
  const std::string wanted = Folded(name);
  for (size_t i = 0; i < kTestedCollectives; ++i) {
    if (Folded(kNames[i]) == wanted) return static_cast<TestedCollective>(i);
  }
  return std::nullopt;
}

std::string TestedCollectiveNames() {
  std::string names;
  for (const std::string_view name : kNames) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

bool HasRoot(TestedCollective collective) {
  return collective == kBroadcast || collective == kReduce || collective == kGather || collective == kScatter;
}

bool HasInPlaceResult(TestedCollective collective) {
  return collective != kSendRecv && collective != kAlltoAll;
}

bool RunsOn(TestedCollective collective, int n_ranks) {
  return collective != kHypercube || std::has_single_bit(static_cast<unsigned>(n_ranks));
}

CallLayout LayoutOf(TestedCollective collective, uint64_t elements, size_t element_bytes, int n_ranks) {
  if (!InParts(collective)) return LayoutOfArgument(collective, elements, n_ranks);
  const uint64_t unit = 16 / element_bytes;
  const uint64_t part = elements / static_cast<uint64_t>(n_ranks) / unit * unit;
  return LayoutOfArgument(collective, part, n_ranks);
}

CallLayout LayoutOfArgument(TestedCollective collective, uint64_t argument, int n_ranks) {
  const uint64_t whole = argument * static_cast<uint64_t>(n_ranks);
  switch (collective) {
    case kAllGather:
    case kGather:
    case kHypercube:
      return {argument, whole, argument, argument, 0};
    case kReduceScatter:
    case kScatter:
      return {whole, argument, argument, 0, argument};
    case kAlltoAll:
      return {whole, whole, argument, 0, 0};
    default:
      return {argument, argument, argument, 0, 0};
  }
}

double AlgorithmBytes(TestedCollective collective, uint64_t argument, size_t element_bytes, int n_ranks) {
  const double part = static_cast<double>(argument) * static_cast<double>(element_bytes);
  if (collective == kHypercube) return part * (n_ranks - 1);
  return InParts(collective) ? part * n_ranks : part;
}

double BusFactor(TestedCollective collective, int n_ranks) {
  if (IsTunable(collective)) return BusBandwidthFactor(static_cast<Collective>(collective), n_ranks);
  const double n = n_ranks;
  return collective == kSendRecv || collective == kHypercube ? 1 : (n - 1) / n;
}

}  // namespace dynamiccl
