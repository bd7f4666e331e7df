// SPDX-License-Identifier: Apache-2.0
#include "plugin/border/cuda_driver.h"

#include <dlfcn.h>

namespace dynamiccl {

void* FindDriverFunction(const char* name) noexcept {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return driver == nullptr ? nullptr : ::dlsym(driver, name);
}

}  // namespace dynamiccl
