// SPDX-License-Identifier: Apache-2.0
// Tries the versions from the newest to the oldest, as NCCL does.
#include "src/nccl_plugin/tuner_interface.h"

namespace dynamiccl {
namespace {

// Adapters from the newest version to the oldest. The first whose symbol the library exports is used.
constexpr struct {
  int version;
  bool (*find)(const DynamicLibrary&, TunerInterface&);
} kAdapters[] = {{7, FindTunerV7}, {6, FindTunerV6}, {5, FindTunerV5},
                 {4, FindTunerV4}, {3, FindTunerV3}, {2, FindTunerV2}};

}  // namespace

bool FindTuner(const DynamicLibrary& library, TunerInterface& out, int newest) {
  for (const auto& adapter : kAdapters) {
    if (adapter.version <= newest && adapter.find(library, out)) return true;
  }
  return false;
}

}  // namespace dynamiccl
