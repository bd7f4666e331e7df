// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/watched_values.h"

#include "plugin/runtime/changed_policy.h"
#include "src/base/log.h"
#include "src/base/whole_file.h"

namespace dynamiccl {

AgreedValues WatchedValues::Changes() {
  struct stat now = {};
  if (path_.empty() || ::stat(path_.c_str(), &now) != 0 || SameFile(now, seen_)) return {};
  seen_ = now;
  const auto text = ReadSmallFile(path_, kMaxValuesFileBytes);
  auto changes = text ? ParseValues(*text, path_) : tl::unexpected(text.error());
  if (!changes) {
    Log(LogLevel::kWarn, "the live values are not used: {}", changes.error().message);
    return {};
  }
  std::erase_if(*changes, [this](const auto& each) {
    const auto known = values_.find(each.first);
    return known != values_.end() && known->second == each.second;
  });
  for (const auto& [name, value] : *changes) values_[name] = value;
  return *changes;
}

}  // namespace dynamiccl
