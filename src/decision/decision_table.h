// SPDX-License-Identifier: Apache-2.0
// The choices of one communicator by (collective, size class, recognised role): each is computed at its key's
// first call and never changes afterwards, so every later decision is one load.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/collective/legal_configs.h"
#include "src/collective/role.h"
#include "src/collective/size_class.h"

namespace dynamiccl {

struct TableKey {
  Collective collective = Collective::kAllReduce;  // one of the tunable ones
  SizeClass size_class;
  Role role = Role::kUnknown;
};

// Computes an entry. Must be a pure function of its arguments and of values that all ranks attested;
// thread-safe. `allowed` is what NCCL offers on every rank.
using EntryFunction = std::function<CollectiveConfig(const TableKey& key, const ConfigMask& allowed)>;

class DecisionTable {
 public:
  explicit DecisionTable(EntryFunction compute) : compute_(std::move(compute)) {}

  // The entry of `key`; `allowed` counts only when it is the key's first call. Any thread. Threads that ask
  // for the same new key at once may both compute it, with the same result.
  CollectiveConfig At(const TableKey& key, const ConfigMask& allowed);

  // Number of entries that exist.
  size_t computed() const;

 private:
  static size_t IndexOf(const TableKey& key);

  const EntryFunction compute_;
  // 0: not computed; else kComputed and the packed config. 36 KB a communicator.
  std::array<std::atomic<uint32_t>, size_t{kTunableCollectives} * kSizeClasses * kRoles> entries_{};
};

}  // namespace dynamiccl
