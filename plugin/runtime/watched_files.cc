// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/watched_files.h"

namespace dynamiccl {
namespace {

// Milliseconds between two checks of the files: an operator's change is noticed within 0.2 s.
constexpr int kLookMs = 200;

}  // namespace

ChangedFiles WatchedFiles::Take() {
  if (!std::exchange(started_, true)) thread_.Start([this] { Run(); });
  const std::lock_guard lock(mutex_);
  return std::exchange(changed_, {});
}

void WatchedFiles::Run() {
  std::vector<pollfd> none;
  do Look();
  while (thread_.WaitFor(none, kLookMs));
}

// The lock is not held while the files are read.
void WatchedFiles::Look() {
  auto policy = policy_->Changed();
  const AgreedValues values = values_.Changes();
  if (!policy && values.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    if (policy) changed_.policy = std::move(policy);
    for (const auto& [name, value] : values) changed_.values[name] = value;
  }
  if (on_change_) on_change_();
}

}  // namespace dynamiccl
