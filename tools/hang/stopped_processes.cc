// SPDX-License-Identifier: Apache-2.0
// Reads /proc and the control groups. Their files and states are in the kernel's documentation:
// filesystems/proc.rst, admin-guide/cgroup-v2.rst and cgroup-v1/freezer-subsystem.rst.
#include "tools/hang/stopped_processes.h"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>
#include <string_view>

#include "src/base/whole_file.h"

namespace dynamiccl {
namespace {

// Enough for the longest file, /proc/PID/maps: a line of about 100 bytes for each of at most 65,530 mappings
// (the kernel's default).
constexpr size_t kMaxFileBytes = 32 << 20;

std::string TextOf(const std::string& path) {
  return ReadSmallFile(path, kMaxFileBytes).value_or("");
}

// Returns what stands behind `key` on its line; empty without such a line.
std::string ValueOf(const std::string& key, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    const size_t value = line.find_first_not_of(" \t", key.size());
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

// Returns true if the sixth column of a process's maps names the file.
bool Maps(const std::string& maps, const std::string& file) {
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    const size_t slash = line.find('/');
    if (slash != std::string::npos && std::string_view(line).substr(slash) == file) return true;
  }
  return false;
}

// Returns the state letter of "4711 (name) S 42 ..."; a name may hold any character.
char StateIn(const std::string& stat) {
  const size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= stat.size() ? '?' : stat[name_end + 2];
}

// Returns the control group of a line of /proc/PID/cgroup if it is frozen; else nothing. Lines are
// "0::<path>" in version 2 and "<number>:<controllers>:<path>" in version 1.
std::string FrozenGroupOf(const std::string& line, const std::string& root) {
  const size_t first = line.find(':'), second = line.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) return "";
  const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
  const std::string group = (controllers.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/freezer") + path;
  if (controllers.empty())
    return ValueOf("frozen", TextOf(root + group + "/cgroup.events")) == "1" ? group : "";
  const std::string state = controllers == "freezer" ? TextOf(root + group + "/freezer.state") : "";
  return state.empty() || state.starts_with("THAWED") ? "" : group;
}

// Says what stops the process in the folder; empty if nothing does.
std::string WhatStops(const std::string& folder, int64_t id, const std::string& root) {
  const char state = StateIn(TextOf(folder + "/stat"));
  if (state == 'T')
    return fmt::format("stopped by a signal such as SIGSTOP; `kill -CONT {}` lets it go on", id);
  const std::string tracer = ValueOf("TracerPid:", TextOf(folder + "/status"));
  if (state == 't') {
    std::string name = TextOf(fmt::format("{}/proc/{}/comm", root, tracer));
    while (name.ends_with('\n')) name.pop_back();
    return fmt::format("stopped by process {}{}, which traces it as debuggers do", tracer,
                       name.empty() ? "" : fmt::format(" ({})", name));
  }
  std::istringstream groups(TextOf(folder + "/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    if (const std::string group = FrozenGroupOf(line, root); !group.empty())
      return fmt::format("frozen with its control group {}, as `docker pause` does", group);
  }
  return "";
}

}  // namespace

void NoteWhatStops(const std::string& path, JobProcess& process, const std::string& root) {
  if (process.process_id <= 0 || process.closed || process.end.how != ProcessEnd::How::kNotKnown) return;
  std::error_code failed;
  const std::string file = std::filesystem::canonical(path, failed).string();
  const std::string folder = fmt::format("{}/proc/{}", root, process.process_id);
  if (failed || !Maps(TextOf(folder + "/maps"), file)) return;
  process.alive = true;
  process.stopped = WhatStops(folder, process.process_id, root);
}

}  // namespace dynamiccl
