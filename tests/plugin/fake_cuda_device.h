// SPDX-License-Identifier: Apache-2.0
// Controls the stand-in for the CUDA driver (fake_cuda_driver.c) by setting its variables.
#pragma once

#include <dlfcn.h>

namespace dynamiccl::testing_support {

// Create this object in a child process, because the driver stays loaded.
class FakeCudaDevice {
 public:
  // `path` is the path of the stand-in's library.
  explicit FakeCudaDevice(const char* path) : driver_(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {}
  int& operator[](const char* name) { return *static_cast<int*>(::dlsym(driver_, name)); }

 private:
  void* driver_;
};

}  // namespace dynamiccl::testing_support
