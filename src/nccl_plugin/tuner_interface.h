// SPDX-License-Identifier: Apache-2.0
// A tuner plugin in the newest form of NCCL's interface, whatever version it exports: older versions are one
// adapter file each (docs/adding_a_tuner_version.md).
#pragma once

#include "src/base/dynamic_library.h"
#include "src/nccl_abi/tuner_v6.h"
#include "src/nccl_plugin/plugin_names.h"

namespace dynamiccl {

// The newest form; `version` is that of the symbol found.
struct TunerInterface {
  ncclTuner_v6_t functions{};
  int version = 0;
};

inline constexpr PluginKind kTunerPlugin{"TUNER", "NCCL_TUNER_PLUGIN", "libnccl-tuner",
                                         NCCL_SUBSYS_INIT | NCCL_SUBSYS_TUNING};

// Fills `out` from the newest version that the library exports; false when it exports none.
bool FindTuner(const DynamicLibrary& library, TunerInterface& out);

// Adapters, of one version each. Those of 2 to 4 keep the found symbol for the functions that convert: as in
// NCCL, a process has one tuner library.
bool FindTunerV6(const DynamicLibrary& library, TunerInterface& out);
bool FindTunerV5(const DynamicLibrary& library, TunerInterface& out);
bool FindTunerV4(const DynamicLibrary& library, TunerInterface& out);
bool FindTunerV3(const DynamicLibrary& library, TunerInterface& out);
bool FindTunerV2(const DynamicLibrary& library, TunerInterface& out);

}  // namespace dynamiccl
