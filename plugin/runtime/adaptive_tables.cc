// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/adaptive_tables.h"

#include <utility>

namespace dynamiccl {

SwitchThread& AdaptiveTables::switch_thread() {
  const std::lock_guard lock(mutex_);
  if (!switch_thread_) switch_thread_ = std::make_unique<SwitchThread>(settings_.policy_path, policy_);
  return *switch_thread_;
}

std::unique_ptr<SwitchLeadership> AdaptiveTables::NewLeadership() {
  if (settings_.mode != Mode::kAdaptive) return nullptr;
  const Sha256Digest first = policy_ ? policy_->sha256 : Sha256Digest{};
  return std::make_unique<SwitchLeadership>(
      std::make_unique<PolicyWatch>(settings_.policy_path, first),
      [this](const ControlToken& token) { return switch_thread().CallsOf(token); }, policy_,
      settings_.site_store_path, settings_.values_path, own_values_);
}

bool AdaptiveTables::Guard(ControlServer& server, GuardSubject subject) {
  const std::lock_guard lock(mutex_);
  if (!guarded_.insert(subject.communicator).second) return false;
  return server.Guard(std::make_shared<TableGuard>(std::move(subject), policy_, totals_));
}

bool AdaptiveTables::Propose(const ControlToken& communicator, ProposedValue proposed) {
  return settings_.mode == Mode::kAdaptive && switch_thread().Propose(communicator, std::move(proposed));
}

AgreedValues AdaptiveTables::Values() const {
  const std::lock_guard lock(mutex_);
  return switch_thread_ ? switch_thread_->Values() : AgreedValues{};
}

bool AdaptiveTables::has_guards() {
  const std::lock_guard lock(mutex_);
  return !guarded_.empty();
}

}  // namespace dynamiccl
