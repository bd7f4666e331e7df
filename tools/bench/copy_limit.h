// SPDX-License-Identifier: Apache-2.0
// The limit on the speed of a collective on one host: its cores cannot copy memory faster. The copy rate is
// measured together with the collective and over as much memory as the collective touches, since caches make
// it depend on the size.
#pragma once

#include <cstddef>
#include <memory>

#include "src/base/status.h"
#include "tools/bench/bench_session.h"
#include "tools/bench/tested_collective.h"

namespace dynamiccl {

// The copy limit of algbw in GB/s, where `copy_gbps` (C below) is the rate at which all cores together copy.
// A copy is one byte read and one written. The limit is C divided by the copies that all n ranks together
// must make for one byte of algbw:
//
//   all-gather      C/n
//   reduce-scatter  C/n * 2/(1+1/n), since it reads n times what it writes
//   all-reduce      2C/(3n-1), the two in series: its gather half leaves a rank's own part where the sum was
//   written
//
// Infinite where nothing need be copied (one rank, in place).
double CopyLimit(TestedCollective collective, int n_ranks, bool in_place, double copy_gbps);

// Bytes of all ranks' buffers of one call.
double FootprintBytes(TestedCollective collective, const CallLayout& layout, size_t element_bytes,
                      int n_ranks);

enum class CopyKind { kMemcpy, kStreaming };

// Copies with the C library's memcpy, or with stores that bypass the caches where the processor has them.
// `bytes` is a multiple of 64, and both addresses are aligned to 64.
void CopyOnce(CopyKind kind, std::byte* to, const std::byte* from, size_t bytes);

// Measures the copy rate of all ranks. It owns one rank's two buffers, in host memory. All ranks must call
// the same functions with the same arguments.
class CopyProbe {
 public:
  // Allocates memory for probes of up to `footprint` bytes over all ranks. A failed allocation is reported by
  // the first measurement.
  CopyProbe(BenchSession& session, double footprint);

  // GB/s copied by all ranks at once, by the faster kind of copy; each kind is timed for about
  // `milliseconds`. Equal on all ranks. With more ranks than cores it is the rate of the cores, which the
  // ranks share.
  Result<double> Measure(double footprint, double milliseconds);
  // Like Measure, for memcpy alone.
  Result<double> MeasureMemcpy(double footprint, double milliseconds);

 private:
  Result<double> Rate(CopyKind kind, size_t bytes, double milliseconds);

  struct Free {
    void operator()(std::byte* p) const;
  };
  BenchSession& session_;
  size_t capacity_;
  std::unique_ptr<std::byte[], Free> from_;
  std::unique_ptr<std::byte[], Free> to_;
};

}  // namespace dynamiccl
