// SPDX-License-Identifier: Apache-2.0
// Puts load on a GPU during measured collectives. The load occupies a chosen share of the multiprocessors or
// of the memory bandwidth. It is for studies of overlap and congestion: the best configs under load differ
// from those on an idle GPU.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "tools/bench/cuda/device_module.h"
#include "tools/bench/cuda/kernel_bodies.h"

namespace dynamiccl::cuda {

// The resource that a load occupies.
enum class LoadKind {
  // A share of the multiprocessors computes all the time and accepts no other block.
  kCompute,
  // The memory is saturated for a share of the time.
  kMemory,
};

// A load as the user requests it.
struct LoadRequest {
  LoadKind kind = LoadKind::kMemory;
  double share = 0.5;
};
// Parses a kind and a share, such as "compute:0.25" or "memory:0.5". The share of a compute load may be up to
// 0.75, that of a memory load up to 1.
Result<LoadRequest> ParseLoad(std::string_view text);

// The kernel launch that produces a load.
struct LoadPlan {
  Grid grid;
  DutyCycle duty;
  // Size of the load's buffer in words of 16 bytes; 0: no buffer.
  uint64_t words = 0;
};
// Computes the kernel launch for a load. A quarter of the multiprocessors always stays free, so that blocks
// of collectives can start. Otherwise a collective that waits for a multiprocessor would wait until the load
// ends.
LoadPlan PlanLoad(const LoadRequest& request, int multiprocessors, int shared_bytes_per_block);

// Holds what a load did, for comparison with what was requested.
struct LoadReport {
  unsigned blocks = 0;
  uint64_t rounds = 0;
  // Bytes read and written, divided by the time from start to stop; 0 for kCompute.
  double gigabytes_per_second = 0;
};

// One load on one GPU. It owns the stream and the memory, and is used by one thread. At most one load runs at
// a time; the destructor stops it.
class BackgroundLoad {
 public:
  // Prepares a load on the calling thread's current device, the GPU of this rank. Returns null if a lower
  // rank of this host uses the same GPU, because that rank makes the load. The error is kUnsupported when
  // this build has no kernels.
  static Result<std::unique_ptr<BackgroundLoad>> Prepare(const LoadRequest& request, int local_rank);
  ~BackgroundLoad();
  BackgroundLoad(const BackgroundLoad&) = delete;
  BackgroundLoad& operator=(const BackgroundLoad&) = delete;

  const LoadPlan& plan() const { return plan_; }
  // Launches the kernel, which runs until Stop.
  Status Start();
  // Ends the load and returns when its last block has ended. It is an error if a block never ran, or if the
  // load ended by itself before.
  Result<LoadReport> Stop();

 private:
  BackgroundLoad() = default;
  Status Allocate();

  std::shared_ptr<const Runtime> runtime_;
  std::unique_ptr<DeviceModule> module_;
  LoadPlan plan_;
  cudaStream_t stream_ = nullptr;
  void* buffer_ = nullptr;
  LoadTally* tally_ = nullptr;         // device memory
  volatile unsigned* stop_ = nullptr;  // host memory that the blocks read
  std::optional<int64_t> started_ns_;
};

}  // namespace dynamiccl::cuda
