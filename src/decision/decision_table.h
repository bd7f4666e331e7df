// SPDX-License-Identifier: Apache-2.0
// The choices of one communicator by collective, size class and recognised role. Each is computed at the
// first call of its key and never changes afterwards, so every later decision is one load.
#pragma once

#include <cstdint>
#include <functional>

#include "src/base/zero_pages.h"
#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/collective/legal_configs.h"
#include "src/collective/role.h"
#include "src/collective/size_class.h"

namespace dynamiccl {

// The key of a table entry.
struct TableKey {
  Collective collective = Collective::kAllReduce;  // one of the tunable ones
  SizeClass size_class;
  Role role = Role::kUnknown;  // the role that the policy recognised
};

// Computes an entry. The function must be thread-safe, and pure in its arguments and in values that all ranks
// attested. `allowed` holds the configurations that NCCL offers on every rank.
using EntryFunction = std::function<CollectiveConfig(const TableKey& key, const ConfigMask& allowed)>;

// The table of one policy on one communicator, owned by a DecisionEngine and used by any thread. It has a
// fixed size of 41 KB, of which only the pages of computed entries take memory, and never allocates after
// construction.
class DecisionTable {
 public:
  explicit DecisionTable(EntryFunction compute) : compute_(std::move(compute)) {}

  // Returns the entry of `key`. `allowed` counts only when this is the key's first call. Threads that ask for
  // the same new key at once may both compute it, with the same result.
  CollectiveConfig Lookup(const TableKey& key, const ConfigMask& allowed);

  // Returns what Lookup would return, but does not change the table. Use it for questions that possibly not
  // every rank asks.
  CollectiveConfig Peek(const TableKey& key, const ConfigMask& allowed) const;

  // Number of entries that exist.
  size_t computed() const;

 private:
  static size_t IndexOf(const TableKey& key);

  const EntryFunction compute_;
  // Indexed by IndexOf, and accessed as atomics. 0: the entry is not computed yet; else kComputed and the
  // packed config.
  const ZeroPages<uint32_t> entries_{size_t{kTunableCollectives} * kSizeClasses * kRoles};
};

}  // namespace dynamiccl
