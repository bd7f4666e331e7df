// SPDX-License-Identifier: Apache-2.0
// The project's kernels on one GPU. They are loaded at run time from the file that nvcc compiled from
// device_kernels.cu.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/bench/cuda/cuda_functions.h"

namespace dynamiccl::cuda {

// Path of lib/dynamiccl_kernels.fatbin in the installation (launch/installation.h); empty when this build has
// no kernels.
std::string FindKernelFile();

// Numbers of blocks and threads of a kernel launch.
struct Grid {
  unsigned blocks = 1;
  unsigned threads = 1;
  // Bytes of dynamic shared memory of each block.
  unsigned shared_bytes = 0;
};

// Owns the loaded kernels. One thread uses it; the module belongs to that thread's current device.
class DeviceModule {
 public:
  // Loads the file. The error is kUnsupported when the file has no code for this GPU's architecture.
  static Result<std::unique_ptr<DeviceModule>> Load(const std::string& path);
  ~DeviceModule();
  DeviceModule(const DeviceModule&) = delete;
  DeviceModule& operator=(const DeviceModule&) = delete;

  // Launches a kernel and returns without waiting for it. `arguments` are the kernel's parameters in order.
  // Their types must be exactly those of the kernel, since nothing checks them.
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
