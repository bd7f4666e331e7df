// SPDX-License-Identifier: Apache-2.0
// A loaded profiler plugin. A process has one library, found by NCCL's rules (plugin_library.h). hostccl uses
// the newest form of the interface, whatever version the library exports. Each older version has an adapter
// file.
#pragma once

#include <memory>

#include "src/base/dynamic_library.h"
#include "src/hostccl/plugin_host/plugin_library.h"
#include "src/nccl_abi/profiler_v7.h"

namespace dynamiccl::hostccl {

// The plugin in the newest form; `version` is the version of the symbol that was found. The adapter drops
// events and states that its version does not know, and returns a null handle.
struct ProfilerInterface {
  ncclProfiler_v7_t functions{};
  int version = 0;
};

// The adapters. Each fills `out` from the symbol of its version and returns false when the library does not
// export it. Those of versions 1 to 6 keep the found symbol in a global variable for their converting
// functions: as in NCCL, a process has one profiler library.
bool FindProfilerV7(const DynamicLibrary& library, ProfilerInterface& out);
bool FindProfilerV6(const DynamicLibrary& library, ProfilerInterface& out);
bool FindProfilerV5(const DynamicLibrary& library, ProfilerInterface& out);
bool FindProfilerV4(const DynamicLibrary& library, ProfilerInterface& out);
bool FindProfilerV3(const DynamicLibrary& library, ProfilerInterface& out);
bool FindProfilerV2(const DynamicLibrary& library, ProfilerInterface& out);
bool FindProfilerV1(const DynamicLibrary& library, ProfilerInterface& out);

// Returns the process's plugin, shared by its communicators; null without one. A search that finds nothing is
// final for the process, as in NCCL. The library is closed with the last owner. Any thread.
std::shared_ptr<const ProfilerInterface> AcquireProfiler();

}  // namespace dynamiccl::hostccl
