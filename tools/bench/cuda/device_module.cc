// SPDX-License-Identifier: Apache-2.0
// Loads and launches kernels through the CUDA driver.
#include "tools/bench/cuda/device_module.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tools/launch/installation.h"

namespace dynamiccl::cuda {

std::string FindKernelFile() {
  const auto installation = FindInstallation();
  return installation ? installation->kernels : std::string();
}

Result<std::unique_ptr<DeviceModule>> DeviceModule::Load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
  if (image.empty()) return MakeError(ErrorKind::kNotFound, "no kernels in '{}'", path);
  DYNAMICCL_TRY(std::shared_ptr<const Driver> driver, Driver::Open());
  std::unique_ptr<DeviceModule> module(new DeviceModule(std::move(driver)));
  const Status loaded = module->driver_->Check(
      module->driver_->ModuleLoadData(&module->module_, image.data()), "cuModuleLoadData");
  if (loaded) return module;
  return WithHint(
      MakeError(ErrorKind::kUnsupported, "{} does not load on this GPU: {}", path, loaded.error().message),
      "build for its architecture: cmake -DDYNAMICCL_CUDA_ARCHITECTURES=...");
}

DeviceModule::~DeviceModule() {
  if (module_ != nullptr) driver_->ModuleUnload(module_);
}

Status DeviceModule::LaunchAt(const char* kernel, Grid grid, cudaStream_t stream, void** arguments) {
  Function function = nullptr;
  DYNAMICCL_CHECK_OK(driver_->Check(driver_->ModuleGetFunction(&function, module_, kernel), kernel));
  if (grid.shared_bytes != 0) {
    DYNAMICCL_CHECK_OK(driver_->Check(
        driver_->FuncSetAttribute(function, kMaxDynamicSharedBytes, static_cast<int>(grid.shared_bytes)),
        "cuFuncSetAttribute"));
  }
  return driver_->Check(driver_->LaunchKernel(function, grid.blocks, 1, 1, grid.threads, 1, 1,
                                              grid.shared_bytes, stream, arguments, nullptr),
                        kernel);
}

}  // namespace dynamiccl::cuda
