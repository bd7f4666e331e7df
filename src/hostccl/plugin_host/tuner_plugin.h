// SPDX-License-Identifier: Apache-2.0
// A loaded tuner plugin. One library a process, found by NCCL's rules (plugin_library.h); whatever version it
// exports, hostccl sees the newest form. Older versions are one adapter file each
// (docs/adding_a_tuner_version.md).
#pragma once

#include <memory>

#include "src/base/dynamic_library.h"
#include "src/hostccl/plugin_host/plugin_library.h"
#include "src/nccl_abi/tuner_v6.h"

namespace dynamiccl::hostccl {

// The newest form; `version` is that of the symbol found.
struct TunerInterface {
  ncclTuner_v6_t functions{};
  int version = 0;
};

inline constexpr PluginKind kTunerPlugin{"TUNER", "NCCL_TUNER_PLUGIN", "libnccl-tuner",
                                         NCCL_SUBSYS_INIT | NCCL_SUBSYS_TUNING};

// Adapters: fill `out` from the symbol of their version; false when the library does not export it. Those of
// 2 to 4 keep the found symbol for the functions that convert: as in NCCL, a process has one tuner library.
bool FindTunerV6(const DynamicLibrary& library, TunerInterface& out);
bool FindTunerV5(const DynamicLibrary& library, TunerInterface& out);
bool FindTunerV4(const DynamicLibrary& library, TunerInterface& out);
bool FindTunerV3(const DynamicLibrary& library, TunerInterface& out);
bool FindTunerV2(const DynamicLibrary& library, TunerInterface& out);

// The process's plugin, shared by its communicators; null without one. A first load that finds nothing is
// final for the process, as in NCCL. The library is closed with the last owner.
std::shared_ptr<const TunerInterface> AcquireTuner();

}  // namespace dynamiccl::hostccl
