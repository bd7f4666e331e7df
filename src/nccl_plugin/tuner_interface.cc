// SPDX-License-Identifier: Apache-2.0
// Tries the versions from the newest to the oldest, as NCCL does.
#include "src/nccl_plugin/tuner_interface.h"

namespace dynamiccl {
namespace {

// Adapters from the newest version to the oldest. The first whose symbol the library exports is used.
constexpr bool (*kAdapters[])(const DynamicLibrary&, TunerInterface&) = {
    FindTunerV7, FindTunerV6, FindTunerV5, FindTunerV4, FindTunerV3, FindTunerV2};

}  // namespace

bool FindTuner(const DynamicLibrary& library, TunerInterface& out) {
  for (const auto adapter : kAdapters) {
    if (adapter(library, out)) return true;
  }
  return false;
}

}  // namespace dynamiccl
