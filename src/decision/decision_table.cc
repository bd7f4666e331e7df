// SPDX-License-Identifier: Apache-2.0
// An entry is one 32-bit word: bit 31 set, then algorithm, protocol and channels with 8 bits each.
#include "src/decision/decision_table.h"

#include <atomic>

namespace dynamiccl {
namespace {

constexpr uint32_t kComputed = 1u << 31;

uint32_t Pack(const CollectiveConfig& config) {
  return kComputed | static_cast<uint32_t>(static_cast<uint8_t>(config.algorithm)) << 16 |
         static_cast<uint32_t>(static_cast<uint8_t>(config.protocol)) << 8 | config.channels;
}

CollectiveConfig Unpack(uint32_t entry) {
  return {static_cast<Algorithm>(static_cast<int8_t>(entry >> 16 & 0xff)),
          static_cast<Protocol>(static_cast<int8_t>(entry >> 8 & 0xff)), static_cast<uint8_t>(entry & 0xff)};
}

}  // namespace

size_t DecisionTable::IndexOf(const TableKey& key) {
  return (static_cast<size_t>(key.collective) * kSizeClasses + key.size_class.index) * kRoles +
         static_cast<size_t>(key.role);
}

[[gnu::hot]] CollectiveConfig DecisionTable::Lookup(const TableKey& key, const ConfigMask& allowed) {
  const std::atomic_ref<uint32_t> entry(entries_[IndexOf(key)]);
  uint32_t packed = entry.load(std::memory_order_acquire);
  if (packed == 0) {
    uint32_t expected = 0;
    packed = Pack(compute_(key, allowed));
    if (!entry.compare_exchange_strong(expected, packed, std::memory_order_acq_rel)) packed = expected;
  }
  return Unpack(packed);
}

CollectiveConfig DecisionTable::Peek(const TableKey& key, const ConfigMask& allowed) const {
  const uint32_t packed = std::atomic_ref<uint32_t>(entries_[IndexOf(key)]).load(std::memory_order_acquire);
  return packed != 0 ? Unpack(packed) : compute_(key, allowed);
}

size_t DecisionTable::computed() const {
  size_t count = 0;
  for (size_t i = 0; i < entries_.size(); ++i)
    count += std::atomic_ref<uint32_t>(entries_[i]).load() != 0 ? 1 : 0;
  return count;
}

}  // namespace dynamiccl
