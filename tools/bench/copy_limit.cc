// SPDX-License-Identifier: Apache-2.0
// Measures the copy rate: all ranks start copying at a common time, and their rates over the same interval
// are added up.
#include "tools/bench/copy_limit.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "src/base/clock.h"

namespace dynamiccl {
namespace {

// Bytes of a cache line, and the alignment that 64-byte vector stores need.
constexpr size_t kUnit = 64;
constexpr size_t kPage = 4096;
// Nanoseconds from the time at which the common start is announced to the start itself. All ranks receive the
// announcement in less time.
constexpr int64_t kStartDelayNs = 100'000;
// A timed interval must be long enough for this many copies by one core, which is assumed to copy 10 GB/s.
constexpr double kFewCopies = 4;

#if defined(__SSE2__)
// Copies with non-temporal stores, which do not read the target's cache lines first.
void Stream(std::byte* to, const std::byte* from, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kUnit) {
    for (size_t part = at; part < at + kUnit; part += sizeof(__m128i)) {
      const __m128i data = _mm_load_si128(reinterpret_cast<const __m128i*>(from + part));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + part), data);
    }
  }
  _mm_sfence();
}
#else
void Stream(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}
#endif

// Bytes that all ranks together must copy for one byte of algbw. A copied byte is read once and written once.
// A reduction reads n parts for each part that it writes, which counts as (n + 1) / 2 copies.
double CopiesPerByte(TestedCollective collective, double n, bool in_place) {
  switch (collective) {
    case TestedCollective::kReduce:
    case TestedCollective::kReduceScatter:
      return (n + 1) / 2;
    case TestedCollective::kAllReduce:
      return (n + 1) / 2 + (n - 1);
    case TestedCollective::kBroadcast:
    case TestedCollective::kAllGather:
      return in_place ? n - 1 : n;
    case TestedCollective::kGather:
    case TestedCollective::kScatter:
      return in_place ? (n - 1) / n : 1;
    case TestedCollective::kHypercube:  // algbw counts (n-1)/n of what every rank receives
      return in_place ? n : n * n / (n - 1);
    default:
      return n;
  }
}

// Size in bytes of each of a rank's two buffers, if all buffers of all ranks have `footprint` bytes together.
size_t ShareOf(double footprint, int n_ranks) {
  const auto bytes = static_cast<size_t>(footprint / 2 / n_ranks);
  return std::max(bytes / kUnit * kUnit, kUnit);
}

// Allocates page-aligned memory and touches its pages, so that no measurement includes page faults. Returns
// null if there is no memory.
std::byte* Pages(size_t bytes) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage));
  if (memory != nullptr) std::memset(memory, 1, bytes);
  return memory;
}

}  // namespace

double CopyLimit(TestedCollective collective, int n_ranks, bool in_place, double copy_gbps) {
  if (n_ranks == 1 && in_place) return std::numeric_limits<double>::infinity();
  if (n_ranks == 1) return copy_gbps;
  return copy_gbps / CopiesPerByte(collective, n_ranks, in_place);
}

double FootprintBytes(TestedCollective collective, const CallLayout& layout, size_t element_bytes,
                      int n_ranks) {
  const auto width = static_cast<double>(element_bytes);
  const double send = static_cast<double>(layout.send) * width;
  const double receive = static_cast<double>(layout.receive) * width;
  if (collective == TestedCollective::kReduce) return send * n_ranks + receive;
  if (collective == TestedCollective::kGather) return send * n_ranks + receive;
  if (collective == TestedCollective::kScatter || collective == TestedCollective::kBroadcast)
    return send + receive * n_ranks;
  return (send + receive) * n_ranks;
}

void CopyOnce(CopyKind kind, std::byte* to, const std::byte* from, size_t bytes) {
  if (kind == CopyKind::kMemcpy)
    std::memcpy(to, from, bytes);
  else
    Stream(to, from, bytes);
}

void CopyProbe::Free::operator()(std::byte* p) const {
  std::free(p);
}

CopyProbe::CopyProbe(BenchSession& session, double footprint)
    : session_(session),
      capacity_(ShareOf(footprint, session.place().n_ranks)),
      from_(Pages(capacity_)),
      to_(Pages(capacity_)) {}

Result<double> CopyProbe::Rate(CopyKind kind, size_t bytes, double milliseconds) {
  if (from_ == nullptr || to_ == nullptr)
    return MakeError(ErrorKind::kUnavailable, "no memory for the copy probe of {} bytes", capacity_);
  CopyOnce(kind, to_.get(), from_.get(), bytes);
  // All ranks copy during one interval on the host's common clock. A rank that waits for a core then counts
  // as slow and not as late.
  std::vector<double> begin{static_cast<double>(MonotonicNanoseconds())};
  DYNAMICCL_CHECK_OK(session_.MaxOverRanks(begin));
  const int64_t start = static_cast<int64_t>(begin[0]) + kStartDelayNs;
  // Nanoseconds that kFewCopies copies take at 10 GB/s.
  const double least = kFewCopies * static_cast<double>(bytes) / 10;
  const int64_t end = start + static_cast<int64_t>(std::max(milliseconds * 1e6, least));
  int64_t now = MonotonicNanoseconds();
  while (now < start) now = MonotonicNanoseconds();
  double copied = 0;
  // Make at least one copy, so that a rank that got no core in time has a rate too.
  do {
    CopyOnce(kind, to_.get(), from_.get(), bytes);
    copied += static_cast<double>(bytes);
    now = MonotonicNanoseconds();
  } while (now < end);
  return session_.SumOverRanks(copied / static_cast<double>(std::max(now, end) - start));
}

Result<double> CopyProbe::MeasureMemcpy(double footprint, double milliseconds) {
  return Rate(CopyKind::kMemcpy, std::min(ShareOf(footprint, session_.place().n_ranks), capacity_),
              milliseconds);
}

Result<double> CopyProbe::Measure(double footprint, double milliseconds) {
  const size_t bytes = std::min(ShareOf(footprint, session_.place().n_ranks), capacity_);
  DYNAMICCL_TRY(const double usual, Rate(CopyKind::kMemcpy, bytes, milliseconds));
  DYNAMICCL_TRY(const double streaming, Rate(CopyKind::kStreaming, bytes, milliseconds));
  return std::max(usual, streaming);
}

}  // namespace dynamiccl
