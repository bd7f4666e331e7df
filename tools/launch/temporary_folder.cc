// SPDX-License-Identifier: Apache-2.0
// Creates the folder with mkdtemp, which picks a free name, and removes it without reporting errors.
#include "tools/launch/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace dynamiccl {

namespace fs = std::filesystem;

Result<TemporaryFolder> TemporaryFolder::Create(const std::string& purpose) {
  std::error_code failed;
  const fs::path folder = fs::temp_directory_path(failed);
  if (failed)
    return WithHint(MakeError(ErrorKind::kUnavailable, "no folder for temporary files: {}", failed.message()),
                    "set TMPDIR to a folder that exists");
  std::string pattern = (folder / ("dynamiccl-" + purpose + "-XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr)
    return MakeError(ErrorKind::kUnavailable, "no temporary folder {}: {}", pattern, ErrnoText(errno));
  return TemporaryFolder(pattern);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace dynamiccl
