// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/tune_plan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string_view>

#include "src/base/sha256.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigits = 16;
// Ends of the names of scripts and configurations.
constexpr std::array kEnds = {".py", ".sh", ".bash", ".toml", ".yaml", ".yml", ".json", ".cfg", ".ini"};
constexpr std::array kPrefixes = {"NCCL_",    "HOSTCCL_", "DYNAMICCL_", "TORCH_",
                                  "PYTORCH_", "CUDA_",    "OMP_",       "MKL_"};
constexpr std::array kNames = {"LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "WORLD_SIZE"};

std::string ShortDigestOf(const std::string& text) {
  return HexDigestOf(text).substr(0, kDigits);
}

// Returns a text that differs between versions of the file at this path; empty if there is no such regular
// file.
std::string MarkOf(const std::string& path) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return {};
  const auto text = ReadTextFile(path);
  return text ? path + "\n" + ShortDigestOf(*text) + "\n" : std::string();
}

std::string FilesOf(const std::vector<std::string>& command, const RuntimeOptions& runtime) {
  std::string marks;
  for (const std::string& word : command)
    if (std::ranges::any_of(kEnds, [&](const char* end) { return word.ends_with(end); }))
      marks += MarkOf(word.substr(word.find('=') == std::string::npos ? 0 : word.find('=') + 1));
  return marks + MarkOf(runtime.topology) + MarkOf(runtime.policy);
}

bool Counts(std::string_view variable) {
  const std::string_view name = variable.substr(0, variable.find('='));
  return std::ranges::any_of(kPrefixes, [&](const char* prefix) { return name.starts_with(prefix); }) ||
         std::ranges::find(kNames, name) != kNames.end();
}

std::string EnvironmentText() {
  std::set<std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (Counts(*entry)) variables.insert(*entry);
  std::string text;
  for (const std::string& variable : variables) text += variable + "\n";
  return text;
}

}  // namespace

std::string TunePlan(const std::string& options, const std::vector<std::string>& command,
                     const RuntimeOptions& runtime) {
  return fmt::format("{} (files {}, environment {})", options, ShortDigestOf(FilesOf(command, runtime)),
                     ShortDigestOf(EnvironmentText()));
}

}  // namespace dynamiccl
