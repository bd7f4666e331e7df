// SPDX-License-Identifier: Apache-2.0
// The entries that this process's decision tables got from the policy, with their predicted times. They are
// compared with measured times, and a later run can use the same choices.
#pragma once

#include <map>
#include <mutex>

#include "src/decision/saved_decisions.h"
#include "src/policy/config_inference.h"

namespace dynamiccl {

// Owned by the process's runtime. Any thread. The functions take a lock; only the first call with a key needs
// one of them.
class ComputedEntries {
 public:
  void Note(const SavedKey& key, const ConfigChoice& choice) {
    const std::lock_guard lock(mutex_);
    choices_[key] = choice;
  }
  std::map<SavedKey, ConfigChoice> All() const {
    const std::lock_guard lock(mutex_);
    return choices_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<SavedKey, ConfigChoice> choices_;
};

}  // namespace dynamiccl
