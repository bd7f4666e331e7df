// SPDX-License-Identifier: Apache-2.0
// Where the buffers and the stream of a benchmark live: host memory with hostccl's streams, or a GPU.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "src/base/status.h"
#include "tools/bench/data_check.h"
#include "tools/bench/nccl_library.h"
#include "tools/bench/unique_id_exchange.h"

namespace dynamiccl {

// One stream and its buffers, used by one thread. Buffers live as long as the device.
class Device {
 public:
  virtual ~Device() = default;

  virtual Result<std::byte*> Allocate(size_t bytes) = 0;
  virtual Status CopyIn(std::byte* device, const std::byte* host, size_t bytes) = 0;
  virtual Status CopyOut(std::byte* host, const std::byte* device, size_t bytes) = 0;

  // Test data of a call, and how many received elements are wrong. Made and looked at on the host and copied,
  // unless the device can do it itself.
  virtual Status FillInput(const CheckedCall& call, int rank, std::byte* to);
  virtual Result<uint64_t> CountWrong(const CheckedCall& call, int rank, const std::byte* received);

  virtual cudaStream_t stream() const = 0;
  virtual Status Synchronize() = 0;

  // Marks a point in the stream; Intervals gives the microseconds between consecutive marks since ClearMarks,
  // once the stream is synchronised.
  virtual void ClearMarks() = 0;
  virtual Status Mark() = 0;
  virtual Result<std::vector<double>> Intervals() = 0;
};

// hostccl's streams; the library must be hostccl. The null stream instead of one of its own on request.
Result<std::unique_ptr<Device>> OpenHostDevice(const NcclLibrary& library, bool null_stream = false);
// The CUDA runtime of this machine, found at run time. Ranks beyond the number of GPUs share them in turn:
// the local rank modulo that number is the GPU.
Result<std::unique_ptr<Device>> OpenCudaDevice(const RankPlace& place, bool null_stream = false);
// What the library works on.
Result<std::unique_ptr<Device>> OpenDevice(const NcclLibrary& library, const RankPlace& place,
                                           bool null_stream = false);

}  // namespace dynamiccl
