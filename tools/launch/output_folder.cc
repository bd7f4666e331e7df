// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/output_folder.h"

#include <fcntl.h>

#include <filesystem>

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<OwnFile> ClaimOutputFolder(const std::string& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "cannot create '{}': {}", folder, failed.message()),
        "name a folder that can be written with -o");
  }
  DYNAMICCL_TRY(auto lock, ClaimOwnFile(folder + "/dynamiccl.lock", O_WRONLY));
  if (lock) return std::move(*lock);
  return WithHint(
      MakeError(ErrorKind::kUnavailable, "another tune, pilot or demo is running in '{}'", folder),
      "wait until it ends, or name another folder with -o");
}

void BeginLog(const std::string& path) {
  fs::path earlier = path;
  std::error_code ignored;
  fs::rename(path, earlier.replace_extension(".earlier" + earlier.extension().string()), ignored);
}

}  // namespace dynamiccl
