// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/switchable_tables.h"

#include <chrono>
#include <thread>
#include <utility>

namespace dynamiccl {
namespace {

// A call that has to wait at a gate first yields its core this many times. This takes about as long as a
// message on a busy machine, and the verdict is usually on its way. After that the call sleeps for 50 us at a
// time and leaves the core to other threads.
constexpr int kYields = 200;
constexpr auto kNap = std::chrono::microseconds(50);

}  // namespace

SwitchableTables::SwitchableTables(std::shared_ptr<DecisionEngine> first, EngineOf engine_of)
    : engine_of_(std::move(engine_of)), current_{first.get(), kFirstTableVersion} {
  versions_[kFirstTableVersion] = {std::move(first), nullptr, kFirstTableVersion, nullptr};
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
  if (gate_.version() == entered_) return false;
  const std::lock_guard lock(mutex_);
  entered_ = gate_.version();
  const auto found = versions_.find(entered_);
  const Version entered = found == versions_.end() ? Version{} : found->second;
  const bool another_table = entered.table != current_.version;
  current_ = {entered.engine.get(), entered.table,
              entered.values ? MemoryPressureIn(*entered.values) : MemoryPressure::kUnknown};
  policy_ = entered.policy;
  values_ = entered.values;
  return another_table;
}

bool SwitchableTables::Offer(uint32_t version, const std::shared_ptr<const Policy>& policy,
                             std::span<const std::byte> plan) {
  const std::lock_guard lock(mutex_);
  if (!versions_.contains(version)) {
    auto engine = engine_of_(policy, plan);
    if (engine == nullptr) return false;
    versions_[version] = {std::move(engine), policy, version, nullptr};
  }
  KeepValues(version);
  return true;
}

bool SwitchableTables::OfferNcclsChoice(uint32_t version) {
  const std::lock_guard lock(mutex_);
  versions_.try_emplace(version, Version{nullptr, nullptr, version, nullptr});
  KeepValues(version);
  return true;
}

bool SwitchableTables::OfferValues(uint32_t version, const AgreedValues& values) {
  const std::lock_guard lock(mutex_);
  if (version <= committed_) return true;
  Version kept = versions_.at(committed_);
  kept.values = std::make_shared<const AgreedValues>(values);
  versions_[version] = std::move(kept);
  return true;
}

void SwitchableTables::KeepValues(uint32_t version) {
  if (version > committed_) versions_.at(version).values = versions_.at(committed_).values;
}

AgreedValues SwitchableTables::CommittedValues() {
  const std::lock_guard lock(mutex_);
  const auto& values = versions_.at(committed_).values;
  return values ? *values : AgreedValues{};
}

void SwitchableTables::Committed(uint32_t version) {
  const std::lock_guard lock(mutex_);
  const uint32_t before = std::exchange(committed_, version);
  std::erase_if(versions_, [=](const auto& each) { return each.first < version && each.first != before; });
}

}  // namespace dynamiccl
