// SPDX-License-Identifier: Apache-2.0
// Simulates a communicator with one key, for tests of what the guard proposes call by call.
#pragma once

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "src/decision/guard/guard.h"
#include "src/decision/guard/table_plan.h"

namespace dynamiccl {

// With these options no key is large enough for experiments, so only the times of calls are judged.
inline const GuardOptions kNoExperiments{.least_share = 2};

inline constexpr CollectiveConfig kPolicyChoice{Algorithm::kTree, Protocol::kLL, 2};
inline constexpr CollectiveConfig kGood{Algorithm::kRing, Protocol::kLL, 4};
inline constexpr CollectiveConfig kBad{Algorithm::kRing, Protocol::kSimple, 8};
inline constexpr int64_t kNccl = 1'000'000;
inline constexpr TableKey kKey{Collective::kAllReduce, {80}, Role::kGradientReduce};

// A communicator in which each step is one call of one key. A proposed version is committed at once.
class OneKey {
 public:
  explicit OneKey(KeyKnowledge knowledge, const GuardOptions& options = {})
      : guard_(options, [=](const TableKey&, Regime) { return knowledge; }) {
    entry_.key = kKey;
    entry_.choice = knowledge.policy_choice;
  }
  // Makes `n` calls. `times` returns the nanoseconds of a config. NCCL's choice takes kNccl.
  template <class Times>
  void Calls(int n, Times times) {
    for (int i = 0; i < n; ++i) {
      const bool samples = !entry_.choice.leaves_nccl_alone();
      const PlannedUse use = UseOf(guard_.plan(), entry_, samples, {ordinal_++, number_});
      GuardedCall call{kKey, use.use, entry_.choice, guard_.version(), now_ns_};
      if (use.use == CallUse::kDefaultSample) call.config = kLeaveNcclAlone;
      if (use.use == CallUse::kTrial) call.config = use.config;
      call.transfer_ns = call.config.leaves_nccl_alone() ? kNccl : times(call.config);
      if (noise) call.transfer_ns = static_cast<int64_t>(static_cast<double>(call.transfer_ns) * noise());
      call.transfer_ns *= slower;
      const int64_t took_ns = call.transfer_ns;
      if (!timed) call.transfer_ns = -1;
      call.captured = captured;
      call.number = number_++;
      if (call.config == kBad) ++bad_calls;
      guard_.TakeCall(call);
      // The program waits for the call.
      now_ns_ += step_ns_of ? step_ns_of(call.config) : 19'000'000 + took_ns;
      if (auto proposal = guard_.Tick(now_ns_)) Commit(std::move(*proposal));
    }
  }
  // Makes at most `most` calls, until the guard proposes with `reason`. Returns true if it did.
  template <class Times>
  bool CallsUntil(GuardReason reason, int most, Times times) {
    const size_t before = reasons.size();
    for (; most > 0; --most) {
      Calls(1, times);
      if (reasons.size() > before && reasons.back() == reason) return true;
    }
    return false;
  }
  // Makes one call of another key, with the config that the version in use has for it.
  void CallOf(const TableKey& key) {
    guard_.TakeCall({key, CallUse::kChoice, ChoiceFor(key), guard_.version(), now_ns_});
  }
  // Returns the config that the version in use has for the key; NCCL's own choice if it does not list the
  // key.
  CollectiveConfig ChoiceFor(const TableKey& key) const {
    for (const KeyPlan& entry : guard_.plan().keys) {
      if (KeyCode(entry.key) == KeyCode(key)) return entry.choice;
    }
    return kLeaveNcclAlone;
  }
  CollectiveConfig choice() const { return entry_.choice; }
  const Guard& guard() const { return guard_; }
  std::vector<GuardReason> reasons;
  std::vector<bool> revocations;
  std::vector<int64_t> times_ns;
  int bad_calls = 0;
  bool captured = false;
  bool timed = true;
  int64_t slower = 1;  // All calls take this many times as long.
  std::function<double()> noise;
  // Returns the time of a step whose one call uses the config. If it is empty, a step takes 19 ms plus the
  // call's time.
  std::function<int64_t(const CollectiveConfig&)> step_ns_of;

 private:
  void Commit(Proposal proposal) {
    reasons.push_back(proposal.reason);
    revocations.push_back(proposal.revocation);
    times_ns.push_back(now_ns_);
    guard_.Committed(guard_.version() + 1, now_ns_);
    for (const KeyPlan& entry : proposal.plan.keys) {
      if (KeyCode(entry.key) == KeyCode(kKey)) entry_ = entry;
    }
    ordinal_ = 0;
  }

  Guard guard_;
  KeyPlan entry_;
  uint32_t ordinal_ = 0;
  uint64_t number_ = 0;
  int64_t now_ns_ = 0;
};

}  // namespace dynamiccl
