// SPDX-License-Identifier: Apache-2.0
// Profiler version 7 is the newest form itself and needs no conversion.
#include "src/hostccl/plugin_host/profiler_plugin.h"

namespace dynamiccl::hostccl {

bool FindProfilerV7(const DynamicLibrary& library, ProfilerInterface& out) {
  const auto* profiler = static_cast<const ncclProfiler_v7_t*>(library.Symbol("ncclProfiler_v7"));
  if (profiler == nullptr) return false;
  out = {*profiler, 7};
  return true;
}

}  // namespace dynamiccl::hostccl
