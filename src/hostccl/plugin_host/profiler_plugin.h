// SPDX-License-Identifier: Apache-2.0
// A loaded profiler plugin. A process has one library, found by NCCL's rules (plugin_library.h). hostccl uses
// the newest version of the interface, whatever version the library exports. Each older version has an
// adapter file that converts the calls.
#pragma once

#include <memory>

#include "src/base/dynamic_library.h"
#include "src/hostccl/plugin_host/plugin_library.h"
#include "src/nccl_abi/profiler_v7.h"

namespace dynamiccl::hostccl {

// The plugin's functions in the newest version of the interface. `version` is the version that the library
// exports. If that version does not know an event, the adapter drops it and returns a null handle; unknown
// states are dropped too.
struct ProfilerInterface {
  ncclProfiler_v7_t functions{};
  int version = 0;
};

// The adapters. Each fills in `out` from the symbol of its version, and returns false when the library does
// not export the symbol. The adapters of versions 1 to 6 keep the symbol in a global variable for their
// converting functions. That is enough, because a process has one profiler library, as in NCCL.
bool FindProfilerV7(const DynamicLibrary& library, ProfilerInterface& out);
bool FindProfilerV6(const DynamicLibrary& library, ProfilerInterface& out);
bool FindProfilerV5(const DynamicLibrary& library, ProfilerInterface& out);
bool FindProfilerV4(const DynamicLibrary& library, ProfilerInterface& out);
bool FindProfilerV3(const DynamicLibrary& library, ProfilerInterface& out);
bool FindProfilerV2(const DynamicLibrary& library, ProfilerInterface& out);
bool FindProfilerV1(const DynamicLibrary& library, ProfilerInterface& out);

// Returns the process's plugin, which its communicators share; null without a plugin. As in NCCL, a process
// that once found no plugin does not search again. The library is closed with its last owner. Any thread may
// call this.
std::shared_ptr<const ProfilerInterface> AcquireProfiler();

}  // namespace dynamiccl::hostccl
