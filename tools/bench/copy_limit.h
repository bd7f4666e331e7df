// SPDX-License-Identifier: Apache-2.0
// Computes the limit that memory copies set for a collective on one host: the collective cannot be faster
// than the host's cores copy. The copy rate is measured together with the collective. It is measured over as
// much memory as the collective touches, since caches make the rate depend on the size.
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
//   all-reduce      2C/(3n-1): a reduce-scatter and then an all-gather that need not copy a rank's own part
//
// The limit is infinite if nothing need be copied (one rank, in place).
double CopyLimit(TestedCollective collective, int n_ranks, bool in_place, double copy_gbps);

// Bytes of the buffers of all ranks together for one call.
double FootprintBytes(TestedCollective collective, const CallLayout& layout, size_t element_bytes,
                      int n_ranks);

enum class CopyKind { kMemcpy, kStreaming };

// Copies with the C library's memcpy, or with stores that bypass the caches if the processor has them.
// `bytes` must be a multiple of 64, and both addresses must be aligned to 64.
void CopyOnce(CopyKind kind, std::byte* to, const std::byte* from, size_t bytes);

// Measures the copy rate of all ranks. It owns one rank's two buffers, in host memory. All ranks must call
// the same functions with the same arguments.
class CopyProbe {
 public:
  // Allocates memory for measurements over up to `footprint` bytes of all ranks together. If the allocation
  // fails, the first measurement reports it.
  CopyProbe(BenchSession& session, double footprint);

  // Returns the GB/s at which all ranks together copy, by the faster of the two kinds of copy. Each kind is
  // timed for about `milliseconds`. The result is equal on all ranks. If there are more ranks than cores, the
  // ranks share the cores, and the result is the rate of the cores.
  Result<double> Measure(double footprint, double milliseconds);
  // Like Measure, but by memcpy only.
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
