// SPDX-License-Identifier: Apache-2.0
// The adapter for profiler version 7. This is the newest version of the interface, so nothing is converted.
#include "src/hostccl/plugin_host/profiler_plugin.h"

namespace dynamiccl::hostccl {

bool FindProfilerV7(const DynamicLibrary& library, ProfilerInterface& out) {
  const auto* profiler = static_cast<const ncclProfiler_v7_t*>(library.Symbol("ncclProfiler_v7"));
  if (profiler == nullptr) return false;
  out = {*profiler, 7};
  return true;
}

}  // namespace dynamiccl::hostccl
