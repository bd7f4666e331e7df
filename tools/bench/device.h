// SPDX-License-Identifier: Apache-2.0
// Says where the buffers and the stream of a benchmark live: in host memory with hostccl's streams, or on a
// GPU.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "src/base/status.h"
#include "tools/bench/data_check.h"
#include "tools/bench/nccl_library.h"
#include "tools/bench/unique_id_exchange.h"

namespace dynamiccl {

// One stream and its buffers, which live as long as the device. One thread uses it.
class Device {
 public:
  virtual ~Device() = default;

  // Allocates memory that collectives can use. The device owns the memory.
  virtual Result<std::byte*> Allocate(size_t bytes) = 0;
  virtual Status CopyIn(std::byte* device, const std::byte* host, size_t bytes) = 0;
  virtual Status CopyOut(std::byte* host, const std::byte* device, size_t bytes) = 0;

  // FillInput writes the test data of a call; CountWrong counts wrong received elements. By default both work
  // on the host and copy the data. A device overrides them if it can do this faster.
  virtual Status FillInput(const CheckedCall& call, int rank, std::byte* to);
  virtual Result<uint64_t> CountWrong(const CheckedCall& call, int rank, const std::byte* received);

  virtual cudaStream_t stream() const = 0;
  virtual Status Synchronize() = 0;

  // Mark records a point in the stream. Intervals returns the microseconds between consecutive marks since
  // ClearMarks. Synchronise the stream before Intervals.
  virtual void ClearMarks() = 0;
  virtual Status Mark() = 0;
  virtual Result<std::vector<double>> Intervals() = 0;
};

// Opens a device in host memory, over hostccl's streams. `library` must be hostccl and must outlive the
// device. With `null_stream` the device uses the null stream instead of a new one.
Result<std::unique_ptr<Device>> OpenHostDevice(const NcclLibrary& library, bool null_stream = false);
// Opens a device on a GPU, through the CUDA runtime of this machine. The GPU's number is the local rank
// modulo the number of GPUs, so ranks share GPUs if there are more ranks than GPUs.
Result<std::unique_ptr<Device>> OpenCudaDevice(const RankPlace& place, bool null_stream = false);
// Opens a device of the kind on which `library` works: host memory for hostccl, a GPU for NVIDIA's NCCL.
Result<std::unique_ptr<Device>> OpenDevice(const NcclLibrary& library, const RankPlace& place,
                                           bool null_stream = false);

}  // namespace dynamiccl
