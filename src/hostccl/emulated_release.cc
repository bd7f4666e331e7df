// SPDX-License-Identifier: Apache-2.0
// Parses HOSTCCL_EMULATE, and gives the version numbers of the emulated releases.
#include "src/hostccl/emulated_release.h"

#include "src/base/settings.h"
#include "src/nccl_plugin/tuner_interface.h"

namespace dynamiccl::hostccl {

Result<EmulatedRelease> EmulatedFromEnvironment() {
  const std::string text = TextSetting(Setting::kHostcclEmulate);
  if (text == "2.22") return EmulatedRelease::k222;
  if (text == "2.30") return EmulatedRelease::k230;
  if (text == "2.32") return EmulatedRelease::k232;
  return MakeError(ErrorKind::kInvalidArgument, "HOSTCCL_EMULATE='{}' is neither 2.22 nor 2.30 nor 2.32",
                   text);
}

int VersionCode(EmulatedRelease release) {
  switch (release) {
    case EmulatedRelease::k222:
      return 22203;
    case EmulatedRelease::k230:
      return 23007;
    case EmulatedRelease::k232:
      break;
  }
  return 23203;
}

int NewestTuner(EmulatedRelease release) {
  return release == EmulatedRelease::k222 ? 3 : kNewestTunerVersion;
}

}  // namespace dynamiccl::hostccl
