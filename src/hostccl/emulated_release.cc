// SPDX-License-Identifier: Apache-2.0
// Parses HOSTCCL_EMULATE, and gives the version numbers of the emulated releases.
#include "src/hostccl/emulated_release.h"

#include "src/base/settings.h"

namespace dynamiccl::hostccl {

Result<EmulatedRelease> EmulatedFromEnvironment() {
  const std::string text = TextSetting(Setting::kHostcclEmulate);
  if (text == "2.30") return EmulatedRelease::k230;
  if (text == "2.32") return EmulatedRelease::k232;
  return MakeError(ErrorKind::kInvalidArgument, "HOSTCCL_EMULATE='{}' is neither 2.30 nor 2.32", text);
}

int VersionCode(EmulatedRelease release) {
  // These numbers are NCCL_VERSION(2, 30, 7) and NCCL_VERSION(2, 32, 3).
  return release == EmulatedRelease::k230 ? 23007 : 23203;
}

}  // namespace dynamiccl::hostccl
