// SPDX-License-Identifier: Apache-2.0
#include "plugin/border/first_time.h"

#include <mutex>
#include <set>

namespace dynamiccl {
namespace {

// A job logs some dozens of different reasons. Some contain a call's number or a name that the program chose.
constexpr size_t kMostReasons = 1000;

}  // namespace

bool FirstTime(const std::string& reason) {
  // Never destroyed, because threads of NCCL may log while the process ends.
  static std::mutex mutex;
  static auto* const reasons = new std::set<std::string>();
  const std::lock_guard lock(mutex);
  return reasons->size() < kMostReasons && reasons->insert(reason).second;
}

}  // namespace dynamiccl
