// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/communicator_registry.h"

#include <algorithm>
#include <utility>

namespace dynamiccl {
namespace {

// A removed communicator is kept until this many others have been removed, because a call on another thread
// may still be inside it. No program is expected to remove so many during one call. Until then a freed
// communicator takes 4 KiB. One that could not be freed takes 0.3 MB on the leader's rank in mode adaptive.
constexpr size_t kKeptAfterRemoval = 256;

// The communicator that the calling thread is initialising; expected_ owns it.
thread_local Communicator* t_initialising = nullptr;

bool Fits(const Communicator& communicator, int n_ranks) {
  // n_ranks is 0 for a child whose size is not known yet, so the child may have any size.
  return !communicator.claimed &&
         (communicator.identity.info.n_ranks == n_ranks || communicator.identity.info.n_ranks == 0);
}

// Frees the parts that only calls need.
void FreeWhatCallsNeed(Communicator& communicator) {
  communicator.issuing.structure.reset();
  communicator.issuing.policy.reset();
  communicator.switching = {};
}

}  // namespace

void CommunicatorRegistry::Expect(std::shared_ptr<Communicator> communicator) {
  const std::lock_guard lock(mutex_);
  t_initialising = communicator.get();
  expected_.push_back(std::move(communicator));
}

void CommunicatorRegistry::StopExpecting(const Communicator& communicator) {
  const std::lock_guard lock(mutex_);
  if (t_initialising == &communicator) t_initialising = nullptr;
  std::erase_if(expected_, [&](const auto& expected) { return expected.get() == &communicator; });
}

void CommunicatorRegistry::CallReturned() {
  t_initialising = nullptr;
}

std::shared_ptr<Communicator> CommunicatorRegistry::Claim(int n_ranks, int n_nodes) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Communicator> found = FindExpected(n_ranks);
  if (!found) return nullptr;
  found->claimed = true;
  found->identity.info.n_ranks = n_ranks;
  found->identity.info.n_nodes = n_nodes;
  return found;
}

std::optional<CommunicatorRegistry::Communicators> CommunicatorRegistry::AmbiguousCandidates(int n_ranks) {
  const std::lock_guard lock(mutex_);
  if (FindExpected(n_ranks)) return std::nullopt;
  Communicators fitting;
  bool any = false;
  for (const auto& expected : expected_) {
    if (!Fits(*expected, n_ranks)) continue;
    any = true;
    if (!std::exchange(expected->not_told_apart, true)) fitting.push_back(expected);
  }
  return any ? std::optional(std::move(fitting)) : std::nullopt;
}

std::shared_ptr<Communicator> CommunicatorRegistry::ClaimByCall(const Communicator& called, int n_ranks,
                                                                int n_nodes) {
  const std::lock_guard lock(mutex_);
  for (const auto& [handle, communicator] : by_handle_) {
    if (communicator.get() != &called) continue;
    if (communicator->identity.info.n_ranks != n_ranks || communicator->claimed.exchange(true))
      return nullptr;
    communicator->identity.info.n_nodes = n_nodes;
    return communicator;
  }
  return nullptr;
}

std::shared_ptr<Communicator> CommunicatorRegistry::FindExpected(int n_ranks) const {
  std::shared_ptr<Communicator> found;
  for (const auto& expected : expected_) {
    if (expected.get() == t_initialising && Fits(*expected, n_ranks)) return expected;
  }
  for (const auto& expected : expected_) {
    if (!Fits(*expected, n_ranks)) continue;
    // Several expected communicators with one token are ranks of the same communicator. They pledge the same
    // values, so any of them may be returned.
    if (found && found->identity.token != expected->identity.token) return nullptr;
    if (!found) found = expected;
  }
  return found;
}

void CommunicatorRegistry::Add(ncclComm_t handle, std::shared_ptr<Communicator> communicator) {
  const std::lock_guard lock(mutex_);
  first_of_size_.try_emplace(communicator->identity.info.n_ranks, communicator);
  by_handle_[handle] = std::move(communicator);
  generation_.fetch_add(1, std::memory_order_release);
}

std::shared_ptr<Communicator> CommunicatorRegistry::Remove(ncclComm_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = by_handle_.find(handle);
  if (found == by_handle_.end()) return nullptr;
  std::shared_ptr<Communicator> communicator = found->second;
  // Keeps the communicator before its handle is erased: push_back throws if memory is short, and a call on
  // another thread may still use the communicator.
  removed_.push_back(communicator);
  by_handle_.erase(found);
  // The registry expects a non-blocking communicator until this removal, because no call tells when its
  // initialisation ends.
  std::erase(expected_, communicator);
  // Most of a communicator's memory belongs to the structure LSTM.
  if (communicator->issuing.structure) communicator->issuing.structure->ReleaseMemory();
  if (removed_.size() > kKeptAfterRemoval) {
    forgotten_.Add(removed_.front()->issuing.ledger);
    std::erase(not_freed_, removed_.front());
    removed_.pop_front();
  }
  generation_.fetch_add(1, std::memory_order_release);
  communicator->in_flight_calls.Close();
  return communicator;
}

void CommunicatorRegistry::Free(const std::shared_ptr<Communicator>& removed) {
  const std::lock_guard lock(mutex_);
  not_freed_.push_back(removed);
  if (!InFlightCalls::FenceAllThreads()) return;
  std::erase_if(not_freed_, [](const std::shared_ptr<Communicator>& communicator) {
    // On non-blocking communicators the library asks its tuner on its own threads, which InFlightCalls does
    // not see.
    if (!communicator->config.blocking || communicator->in_flight_calls.any()) return false;
    FreeWhatCallsNeed(*communicator);
    return true;
  });
}

Communicator* CommunicatorRegistry::FindNew(ncclComm_t handle, uint64_t generation) {
  const std::lock_guard lock(mutex_);
  const auto found = by_handle_.find(handle);
  if (found == by_handle_.end()) return nullptr;
  last_ = {handle, found->second.get(), generation};
  return last_.communicator;
}

Communicator* CommunicatorRegistry::FirstOfSize(int n_ranks) const {
  const std::lock_guard lock(mutex_);
  const auto found = first_of_size_.find(n_ranks);
  return found == first_of_size_.end() ? nullptr : found->second.lock().get();
}

void CommunicatorRegistry::AddLedgersTo(CallLedger& sum) const {
  const std::lock_guard lock(mutex_);
  sum.Add(forgotten_);
  for (const auto& communicator : removed_) sum.Add(communicator->issuing.ledger);
  for (const auto& [handle, communicator] : by_handle_) sum.Add(communicator->issuing.ledger);
}

}  // namespace dynamiccl
