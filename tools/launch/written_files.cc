// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/written_files.h"

#include <glob.h>

#include <chrono>
#include <string_view>

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kClockSkew{1};

// Returns a pattern for glob in which %h, %p and %r match any text.
std::string GlobOf(const std::string& pattern) {
  std::string glob;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'h' || next == 'p' || next == 'r') {
      glob += '*';
      ++i;
      continue;
    }
    if (std::string_view("*?[\\").find(pattern[i]) != std::string_view::npos) glob += '\\';
    glob += pattern[i];
  }
  return glob;
}

}  // namespace

fs::file_time_type LaunchTime() {
  return fs::file_time_type::clock::now() - kClockSkew;
}

std::vector<std::string> FilesWrittenSince(const std::string& pattern, fs::file_time_type begun) {
  std::vector<std::string> paths;
  glob_t found{};
  if (::glob(GlobOf(pattern).c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) {
      std::error_code failed;
      const auto written = fs::last_write_time(found.gl_pathv[i], failed);
      if (!failed && written >= begun) paths.emplace_back(found.gl_pathv[i]);
    }
  }
  ::globfree(&found);
  return paths;
}

}  // namespace dynamiccl
