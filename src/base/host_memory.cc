// SPDX-License-Identifier: Apache-2.0
// Paths and keys are those of the kernel's documentation: admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst and
// filesystems/proc.rst.
#include "src/base/host_memory.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "src/base/whole_file.h"

namespace dynamiccl {
namespace {

constexpr size_t kMaxFileBytes = 64 * 1024;

// The files of one version of control groups.
struct GroupFiles {
  const char* folder;
  const char* limit;
  const char* used;
  const char* droppable;  // key of memory.stat: bytes of file caches that have not been used lately
};
constexpr GroupFiles kVersion2{"/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file"};
constexpr GroupFiles kVersion1{"/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                               "total_inactive_file"};

std::optional<uint64_t> NumberAtStart(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  uint64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() ? std::optional(number) : std::nullopt;
}

// Returns the number after `key` on the line that begins with it.
std::optional<uint64_t> NumberOf(std::string_view key, std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(key)) return NumberAtStart(line.substr(key.size()));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return std::nullopt;
}

std::string TextOf(const std::string& path) {
  return ReadSmallFile(path, kMaxFileBytes).value_or("");
}

// The group's limit and what is left of it; nothing if it has none ("max").
std::optional<MemorySizes> OfGroup(const std::string& folder, const GroupFiles& files) {
  const auto limit = NumberAtStart(TextOf(folder + files.limit));
  const auto used = NumberAtStart(TextOf(folder + files.used));
  if (!limit || !used) return std::nullopt;
  const uint64_t dropped = NumberOf(files.droppable, TextOf(folder + "/memory.stat")).value_or(0);
  const uint64_t held = *used - std::min(*used, dropped);
  return MemorySizes{*limit - std::min(*limit, held), *limit};
}

// Takes the limits of the group at `path` and of all groups above it.
void Limit(const std::string& root, const GroupFiles& files, std::string path, MemorySizes& sizes) {
  while (true) {
    const auto group = OfGroup(root + files.folder + path, files);
    if (group && group->free_bytes < sizes.free_bytes) sizes = *group;
    const size_t parent = path.rfind('/');
    if (parent == std::string::npos) return;
    path.resize(parent);
  }
}

}  // namespace

MemorySizes HostMemory(const std::string& root) {
  const std::string meminfo = TextOf(root + "/proc/meminfo");
  MemorySizes sizes{1024 * NumberOf("MemAvailable:", meminfo).value_or(0),
                    1024 * NumberOf("MemTotal:", meminfo).value_or(0)};
  // Lines are "0::<path>" in version 2 and "<number>:<controllers>:<path>" in version 1.
  const std::string groups = TextOf(root + "/proc/self/cgroup");
  for (std::string_view rest = groups; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const size_t controllers = line.find(':'), path = line.find(':', controllers + 1);
    if (path == std::string_view::npos) continue;
    const std::string_view names = line.substr(controllers + 1, path - controllers - 1);
    if (!names.empty() && names != "memory") continue;
    Limit(root, names.empty() ? kVersion2 : kVersion1, std::string(line.substr(path + 1)), sizes);
  }
  return sizes;
}

}  // namespace dynamiccl
