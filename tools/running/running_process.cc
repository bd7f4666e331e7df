// SPDX-License-Identifier: Apache-2.0
// Recognises a process by its mapped files and reads its environment.
#include "tools/running/running_process.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <tuple>

#include "src/base/launch_variables.h"
#include "src/base/settings.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kObject = "libdynamiccl.so";

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Splits a text into strings, each of which ends with a zero byte.
std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, '\0');) words.push_back(word);
  return words;
}

std::map<std::string, std::string> Environment(const fs::path& process) {
  std::map<std::string, std::string> environment;
  for (const std::string& entry : Words(ReadAll(process / "environ"))) {
    const size_t equals = entry.find('=');
    if (equals != std::string::npos) environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

// Returns the number if the whole text is one, else nothing.
std::optional<int> Number(const std::string& text) {
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || code != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// Launchers state the rank in variables of different names. Returns the rank from the first of them that is
// set; -1 if none is set.
int RankIn(const std::map<std::string, std::string>& environment) {
  for (const char* name : kRankVariables) {
    const auto found = environment.find(name);
    if (found == environment.end()) continue;
    if (const auto rank = Number(found->second); rank && *rank >= 0) return *rank;
  }
  return -1;
}

// Files that the process has mapped: the sixth column of /proc/PID/maps.
std::vector<std::string> MappedFiles(const fs::path& process) {
  std::vector<std::string> files;
  std::istringstream lines(ReadAll(process / "maps"));
  for (std::string line; std::getline(lines, line);) {
    const size_t slash = line.find('/');
    if (slash != std::string::npos) files.push_back(line.substr(slash));
  }
  return files;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Returns the process in the folder; nothing if DynamICCL is not loaded in it or this user may not read it.
std::optional<RunningProcess> Look(const fs::path& folder, pid_t id) {
  RunningProcess process{.id = id};
  bool loaded = false;
  for (const std::string& file : MappedFiles(folder)) {
    if (fs::path(file).filename() == kObject) loaded = true;
    // Under `dynamiccl record` each process writes a file of its own with this ending
    // (tools/record/recorded_launch.h).
    const bool is_part = file.ends_with(".part") && file.find(".ctrace~") != std::string::npos;
    if (file.ends_with(".ctrace") || is_part) process.trace = file;
  }
  if (!loaded) return {};
  const auto environment = Environment(folder);
  process.rank = RankIn(environment);
  process.program = Joined(Words(ReadAll(folder / "cmdline")));
  for (const SettingRow& row : AllSettings()) {
    const auto found = environment.find(row.name);
    if (found != environment.end()) process.settings.insert(*found);
  }
  std::error_code ignored;
  process.folder = fs::read_symlink(folder / "cwd", ignored).string();
  return process;
}

}  // namespace

std::string RunningProcess::PathSetting(const char* name) const {
  const auto found = settings.find(name);
  if (found == settings.end() || found->second.empty()) return "";
  return (fs::path(folder) / ExpandPath(found->second, rank, id)).string();
}

std::vector<RunningProcess> RunningProcesses(const std::string& proc) {
  std::vector<RunningProcess> processes;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(proc, ignored)) {
    const auto id = Number(entry.path().filename().string());
    if (!id) continue;
    if (auto process = Look(entry.path(), *id)) processes.push_back(std::move(*process));
  }
  std::sort(processes.begin(), processes.end(), [](const RunningProcess& a, const RunningProcess& b) {
    return std::tie(a.rank, a.id) < std::tie(b.rank, b.id);
  });
  return processes;
}

}  // namespace dynamiccl
