// SPDX-License-Identifier: Apache-2.0
// A loaded tuner plugin. One library a process, found by NCCL's rules; whatever version it exports, hostccl
// sees the newest form. Older versions are one adapter file each (docs/adding_a_tuner_version.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/base/dynamic_library.h"
#include "src/nccl_abi/tuner_v6.h"

namespace dynamiccl::hostccl {

// The newest form; `version` is that of the symbol found.
struct TunerInterface {
  ncclTuner_v6_t functions{};
  int version = 0;
};

// Adapters: fill `out` from the symbol of their version; false when the library does not export it.
bool FindTunerV6(const DynamicLibrary& library, TunerInterface& out);
bool FindTunerV5(const DynamicLibrary& library, TunerInterface& out);

// Names to hand to dlopen in order, for a value of NCCL_TUNER_PLUGIN (null: not set). Empty: no plugin is
// wanted. An empty name stands for the process itself (STATIC_PLUGIN, or any prefix of that word, as NCCL
// compares).
std::vector<std::string> TunerCandidates(const char* variable);

// The process's plugin, shared by its communicators; null without one. A first load that finds nothing is
// final for the process, as in NCCL. The library is closed with the last owner.
std::shared_ptr<const TunerInterface> AcquireTuner();

}  // namespace dynamiccl::hostccl
