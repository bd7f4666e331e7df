// SPDX-License-Identifier: Apache-2.0
// A tuner plugin in the newest form of NCCL's interface, whatever version the plugin exports. hostccl calls
// tuner plugins in this form, and so does our plugin when it chains to another tuner. One file for each older
// version has its adapter; docs/adding_a_tuner_version.md says how to add one.
#pragma once

#include "src/base/dynamic_library.h"
#include "src/nccl_abi/tuner_v7.h"
#include "src/nccl_plugin/plugin_names.h"

namespace dynamiccl {

// The functions of a found tuner; `version` is that of the symbol that was found. The library must stay
// loaded while they are used.
struct TunerInterface {
  ncclTuner_v7_t functions{};
  int version = 0;
};

// The variable and the file names by which NCCL looks for a tuner.
inline constexpr PluginKind kTunerPlugin{"TUNER", "NCCL_TUNER_PLUGIN", "libnccl-tuner",
                                         NCCL_SUBSYS_INIT | NCCL_SUBSYS_TUNING};

// The newest version of the interface.
inline constexpr int kNewestTunerVersion = 7;

// Fills `out` from the newest version that the library exports, up to version `newest`. Returns false when it
// exports none.
bool FindTuner(const DynamicLibrary& library, TunerInterface& out, int newest = kNewestTunerVersion);

// One adapter for each version. The adapters of versions 2 to 6 keep the found symbol in a global variable
// for their converting functions, because a process has one tuner library, as in NCCL.
bool FindTunerV7(const DynamicLibrary& library, TunerInterface& out);
bool FindTunerV6(const DynamicLibrary& library, TunerInterface& out);
bool FindTunerV5(const DynamicLibrary& library, TunerInterface& out);
bool FindTunerV4(const DynamicLibrary& library, TunerInterface& out);
bool FindTunerV3(const DynamicLibrary& library, TunerInterface& out);
bool FindTunerV2(const DynamicLibrary& library, TunerInterface& out);

}  // namespace dynamiccl
