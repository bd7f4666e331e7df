// SPDX-License-Identifier: Apache-2.0
// How fast a collective on one host can be: as fast as its cores copy memory. The rate is measured beside the
// collective, over as much memory as the collective touches, since caches make it depend on the size.
#pragma once

#include <cstddef>
#include <memory>

#include "src/base/status.h"
#include "tools/bench/bench_session.h"
#include "tools/bench/tested_collective.h"

namespace dynamiccl {

// Copies (one byte read and one written) that all ranks together must make for one byte of algbw. With C, the
// bytes a second that the cores copy together, C / CopiesPerByte is the copy limit of algbw:
//   all-gather C/n; reduce-scatter C/n * 2/(1+1/n), for it reads n times what it writes; all-reduce the two
//   in series, 2C/(3n-1): its gather half leaves a rank's own part where the sum was written.
// Infinite where nothing need be copied at all (one rank, in place).
double CopyLimit(TestedCollective collective, int n_ranks, bool in_place, double copy_gbps);

// Memory that all ranks' buffers of one call take, in bytes.
double FootprintBytes(TestedCollective collective, const CallLayout& layout, size_t element_bytes,
                      int n_ranks);

enum class CopyKind { kMemcpy, kStreaming };

// Copies with the C library's memcpy, or with stores that bypass the caches where the processor has them.
// `bytes` is a multiple of 64 and both addresses are aligned to it.
void CopyOnce(CopyKind kind, std::byte* to, const std::byte* from, size_t bytes);

// One rank's two buffers. All ranks call the same functions with the same arguments.
class CopyProbe {
 public:
  // Host memory for probes of up to `footprint` bytes over all ranks.
  CopyProbe(BenchSession& session, double footprint);

  // GB/s copied by all ranks at once, the faster of the two kinds; each is timed for about `milliseconds`.
  // Equal on all ranks. With more ranks than cores the ranks share the cores: the rate is that of the cores.
  Result<double> Measure(double footprint, double milliseconds);
  // memcpy alone.
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
