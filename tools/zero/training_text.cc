// SPDX-License-Identifier: Apache-2.0
#include "tools/zero/training_text.h"

#include <filesystem>

#include "tools/launch/cache_folder.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

std::string CachedText() {
  return (CacheFolder() / "shakespeare").string();
}

}  // namespace

Result<std::string> FindTrainingText(const std::string& named) {
  const std::string path = named.empty() ? CachedText() : fs::absolute(named).string();
  std::error_code ignored;
  if (fs::exists(path, ignored)) return path;
  if (!named.empty()) {
    return WithHint(MakeError(ErrorKind::kNotFound, "no text at '{}'", named),
                    "--data takes a text file or a folder of them");
  }
  return WithHint(MakeError(ErrorKind::kNotFound, "there is no text to train on in '{}'", path),
                  "run tools/setup/fetch_shakespeare.sh, or give a text file with --data FILE");
}

}  // namespace dynamiccl
