// SPDX-License-Identifier: Apache-2.0
#include "tools/zero/training_text.h"

#include <cstdlib>
#include <filesystem>

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

std::string CachedText() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path root = cache != nullptr && *cache != '\0'
                            ? fs::path(cache)
                            : fs::path(home == nullptr ? "/" : home) / ".cache";
  return (root / "dynamiccl/shakespeare").string();
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
