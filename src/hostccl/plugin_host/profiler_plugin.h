// SPDX-License-Identifier: Apache-2.0
// A loaded profiler plugin. One library a process, found by NCCL's rules (plugin_library.h); whatever version
// it exports, hostccl speaks the newest form. Older versions are one adapter file each.
#pragma once

#include <memory>

#include "src/base/dynamic_library.h"
#include "src/hostccl/plugin_host/plugin_library.h"
#include "src/nccl_abi/profiler_v7.h"

namespace dynamiccl::hostccl {

// The newest form; `version` is that of the symbol found. Events and states that a version does not know end
// in its adapter, with a null handle.
struct ProfilerInterface {
  ncclProfiler_v7_t functions{};
  int version = 0;
};

// Adapters: fill `out` from the symbol of their version; false when the library does not export it. Those of
// 1 to 6 keep the found symbol for the functions that convert: as in NCCL, a process has one profiler
// library.
bool FindProfilerV7(const DynamicLibrary& library, ProfilerInterface& out);
bool FindProfilerV6(const DynamicLibrary& library, ProfilerInterface& out);
bool FindProfilerV5(const DynamicLibrary& library, ProfilerInterface& out);
bool FindProfilerV4(const DynamicLibrary& library, ProfilerInterface& out);
bool FindProfilerV3(const DynamicLibrary& library, ProfilerInterface& out);
bool FindProfilerV2(const DynamicLibrary& library, ProfilerInterface& out);
bool FindProfilerV1(const DynamicLibrary& library, ProfilerInterface& out);

// The process's plugin, shared by its communicators; null without one. A search that finds nothing is final
// for the process, as in NCCL. The library is closed with the last owner.
std::shared_ptr<const ProfilerInterface> AcquireProfiler();

}  // namespace dynamiccl::hostccl
