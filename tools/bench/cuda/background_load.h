// SPDX-License-Identifier: Apache-2.0
// Work on a GPU beside the collectives that are measured, at a settable share: multiprocessors held, or
// memory bandwidth used. For studying overlap and congestion; the choices that are best beside it differ from
// those on an idle GPU.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "tools/bench/cuda/device_module.h"
#include "tools/bench/cuda/kernel_bodies.h"

namespace dynamiccl::cuda {

enum class LoadKind {
  kCompute,  // that share of the multiprocessors computes and takes no other block
  kMemory,   // that share of the time the memory is saturated
};

struct LoadRequest {
  LoadKind kind = LoadKind::kMemory;
  double share = 0.5;
};
// "compute:0.25", "memory:0.5".
Result<LoadRequest> ParseLoad(std::string_view text);

struct LoadPlan {
  Grid grid;
  DutyCycle duty;
  uint64_t words = 0;  // of 16 bytes, in the buffer; 0: none
};
// A quarter of the multiprocessors is always left free, where the blocks of collectives can start: a
// collective that waits for a multiprocessor waits for the load's end. Pure.
LoadPlan PlanLoad(const LoadRequest& request, int multiprocessors, int shared_bytes_per_block);

// What a load did, so that a share asked for can be compared with what came of it.
struct LoadReport {
  unsigned blocks = 0;
  uint64_t rounds = 0;
  double gigabytes_per_second = 0;  // read and written, over the time from start to stop; 0 for kCompute
};

// Used by one thread. At most one load runs at a time.
class BackgroundLoad {
 public:
  // On the GPU of this rank, which is the calling thread's current device. Null for a rank that shares it
  // with one of a lower number, which loads it already.
  static Result<std::unique_ptr<BackgroundLoad>> Prepare(const LoadRequest& request, int local_rank);
  ~BackgroundLoad();
  BackgroundLoad(const BackgroundLoad&) = delete;
  BackgroundLoad& operator=(const BackgroundLoad&) = delete;

  const LoadPlan& plan() const { return plan_; }
  Status Start();
  // Returns when the last block has ended. An error when a block never ran.
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
