// SPDX-License-Identifier: Apache-2.0
// The project's kernels on one GPU, loaded at run time from the file that nvcc made (device_kernels.cu).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/bench/cuda/cuda_functions.h"

namespace dynamiccl::cuda {

// lib/dynamiccl_kernels.fatbin beside the program's bin/, or DYNAMICCL_HOME's; empty when this build has
// none.
std::string FindKernelFile();

struct Grid {
  unsigned blocks = 1;
  unsigned threads = 1;
  unsigned shared_bytes = 0;  // dynamic, of a block
};

// Used by one thread, whose current device it belongs to.
class DeviceModule {
 public:
  // Fails where the file was not built for this GPU's architecture.
  static Result<std::unique_ptr<DeviceModule>> Load(const std::string& path);
  ~DeviceModule();
  DeviceModule(const DeviceModule&) = delete;
  DeviceModule& operator=(const DeviceModule&) = delete;

  // `arguments` are the kernel's parameters in order, exactly of their types. Returns when it is launched.
  template <typename... Arguments>
  Status Launch(const char* kernel, Grid grid, cudaStream_t stream, Arguments... arguments) {
    void* addresses[] = {static_cast<void*>(&arguments)...};
    return LaunchAt(kernel, grid, stream, addresses);
  }

 private:
  explicit DeviceModule(std::shared_ptr<const Driver> driver) : driver_(std::move(driver)) {}
  Status LaunchAt(const char* kernel, Grid grid, cudaStream_t stream, void** arguments);

  std::shared_ptr<const Driver> driver_;
  Module module_ = nullptr;
};

}  // namespace dynamiccl::cuda
