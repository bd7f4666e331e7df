// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/switchable_tables.h"

#include <chrono>
#include <thread>
#include <utility>

namespace dynamiccl {
namespace {

// How a call waits at a gate. If it has to wait at all, a verdict is on its way. So it yields for about as
// long as a message takes on a busy machine, and then sleeps for 50 us at a time to leave the core to others.
constexpr int kYields = 200;
constexpr auto kNap = std::chrono::microseconds(50);

}  // namespace

SwitchableTables::SwitchableTables(std::shared_ptr<DecisionEngine> first, EngineOf engine_of)
    : engine_of_(std::move(engine_of)), current_{first.get(), kFirstTableVersion} {
  tables_[kFirstTableVersion] = {std::move(first), nullptr};
}

bool SwitchableTables::Enter(uint64_t number) {
  gate_.Begin(number);
  digest_.Begin(number);
  for (int tries = 0; !gate_.TryPass(number); ++tries) {
    if (tries < kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
  if (gate_.version() == current_.version) return false;
  const std::lock_guard lock(mutex_);
  const auto found = tables_.find(gate_.version());
  const Table table = found == tables_.end() ? Table{} : found->second;
  current_ = {table.engine.get(), gate_.version()};
  policy_ = table.policy;
  return true;
}

bool SwitchableTables::Offer(uint32_t version, const std::shared_ptr<const Policy>& policy,
                             std::span<const std::byte> plan) {
  const std::lock_guard lock(mutex_);
  if (tables_.contains(version)) return true;
  auto table = engine_of_(policy, plan);
  if (table == nullptr) return false;
  tables_[version] = {std::move(table), policy};
  return true;
}

bool SwitchableTables::OfferNcclsChoice(uint32_t version) {
  const std::lock_guard lock(mutex_);
  tables_.try_emplace(version);
  return true;
}

void SwitchableTables::Committed(uint32_t version) {
  const std::lock_guard lock(mutex_);
  const uint32_t before = std::exchange(committed_, version);
  std::erase_if(tables_, [=](const auto& table) { return table.first < version && table.first != before; });
}

}  // namespace dynamiccl
