// SPDX-License-Identifier: Apache-2.0
// Finds functions of the stand-in by name.
#include "tests/real_nccl/cuda_standin/function_table.h"

#include <map>
#include <mutex>
#include <string>

#include "tests/real_nccl/cuda_standin/code_patch.h"

namespace cuda_standin {
namespace {

const void* FindIn(std::span<const NamedFunction> table, std::string_view name) {
  for (const NamedFunction& row : table) {
    if (row.name == name) return row.address;
  }
  return nullptr;
}

std::string_view WithoutStreamSuffix(std::string_view name) {
  if (name.ends_with("_ptsz") || name.ends_with("_ptds")) name.remove_suffix(5);
  return name;
}

}  // namespace

const void* FindRuntimeFunction(std::string_view name) {
  name = WithoutStreamSuffix(name);
  for (const auto& table : {RuntimeDeviceFunctions(), RuntimeMemoryFunctions(), RuntimeStreamFunctions(),
                            RuntimeCaptureFunctions(), RuntimeLaunchFunctions()}) {
    if (const void* address = FindIn(table, name)) return address;
  }
  return nullptr;
}

const void* FindDriverFunction(const char* name) {
  for (const auto& table : {DriverDeviceFunctions(), DriverMemoryFunctions(), DriverLaunchFunctions()}) {
    if (const void* address = FindIn(table, name)) return address;
  }
  // Each unknown name gets one stub. The stub and its name are kept for the life of the process.
  static std::mutex mutex;
  static auto* stubs = new std::map<std::string, void*>;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto row = stubs->emplace(name, nullptr).first;
  if (row->second == nullptr) row->second = MakeMissingFunction(row->first.c_str());
  return row->second;
}

}  // namespace cuda_standin
