// SPDX-License-Identifier: Apache-2.0
// Decides which table version a call of one communicator uses. Only here do the thread that issues calls and
// the control thread meet. A call costs one store and one load. Only a call at or after an armed boundary may
// have to wait.
//
// Why no call can be missed: the control thread stores `armed_` and then loads `calls_`; the issuing thread
// stores `calls_` and then loads `armed_`. In the single total order of seq_cst at least one of them sees the
// other's store. So if a rank pledges because its boundary was not reached, its issuing thread will see the
// boundary (tests explore all states: docs/switching.md).
#pragma once

#include <atomic>
#include <cstdint>

namespace dynamiccl {

// The version that means NCCL's own choice.
inline constexpr uint32_t kDefaultTableVersion = 0;

// The gate of one communicator on one rank, owned by its SwitchableTables (plugin/runtime). Each function
// names its thread. Nothing allocates or locks.
class CallGate {
 public:
  CallGate() = default;
  explicit CallGate(uint32_t first_version) : active_(first_version) {}
  // Copies a gate, for tests that explore states. Meanwhile no other thread may use either gate.
  CallGate(const CallGate& other) { *this = other; }
  CallGate& operator=(const CallGate& other) {
    calls_.store(other.calls());
    armed_.store(other.armed_.load());
    released_.store(other.released_.load());
    next_ = other.next_;
    active_ = other.active_;
    return *this;
  }

  // Issuing thread: call `number` begins. Numbers rise by one; a call that NCCL refused begins again with the
  // same number. Begin must come before TryPass, because this thread first announces the call and then checks
  // whether the gate is armed.
  void Begin(uint64_t number) { calls_.store(number + 1, std::memory_order_seq_cst); }

  // Issuing thread, after Begin: true when `version()` holds for this call, false when the call must wait and
  // try again.
  bool TryPass(uint64_t number) {
    const uint64_t armed = armed_.load(std::memory_order_seq_cst);
    if (number < armed >> 1) return true;
    if (released_.load(std::memory_order_acquire)) {
      active_ = kDefaultTableVersion;
      return true;
    }
    if ((armed & kCommitted) == 0) return false;
    active_ = next_;
    armed_.store(kNever, std::memory_order_release);
    return true;
  }

  // Issuing thread: returns the table version of the last call that passed.
  uint32_t version() const { return active_; }

  // Control thread, like all functions down to idle(): calls from `boundary` on wait for Commit or Disarm.
  // The gate must be idle when Arm is called.
  void Arm(uint64_t boundary, uint32_t next) {
    next_ = next;
    armed_.store(boundary << 1, std::memory_order_seq_cst);
  }
  // True if call `boundary` has begun.
  bool Reached(uint64_t boundary) const { return calls() > boundary; }
  // Lets the calls from the boundary on use the next version.
  void Commit() { armed_.fetch_or(kCommitted, std::memory_order_acq_rel); }
  // Lets the calls from the boundary on keep the version that is in use.
  void Disarm() { armed_.store(kNever, std::memory_order_release); }
  // Returns the table version that the last Arm named.
  uint32_t next_version() const { return next_; }
  // False while a switch is under way: from Arm until Disarm or, after Commit, until the issuing thread has
  // taken the new version.
  bool idle() const { return armed_.load(std::memory_order_acquire) == kNever; }
  // Number of calls that have begun.
  uint64_t calls() const { return calls_.load(std::memory_order_seq_cst); }

  // Any thread: call this when the communicator is aborted. Calls no longer wait at the gate. NCCL chooses
  // for those that would have waited.
  void Release() { released_.store(true, std::memory_order_release); }
  bool released() const { return released_.load(std::memory_order_acquire); }

  // Visits every word of the state, for tests that explore states.
  template <class Visit>
  void VisitState(Visit visit) const {
    visit(calls_.load());
    visit(armed_.load());
    visit(uint64_t{released_.load()});
    visit(uint64_t{next_} << 32 | active_);
  }

 private:
  static constexpr uint64_t kCommitted = 1;
  static constexpr uint64_t kNever = ~uint64_t{1};

  std::atomic<uint64_t> calls_{0};
  // The boundary shifted left by one, with the bit kCommitted once the verdict is a commit.
  std::atomic<uint64_t> armed_{kNever};
  std::atomic<bool> released_{false};
  // The control thread writes it before armed_; the issuing thread reads it after it has seen kCommitted.
  uint32_t next_ = kDefaultTableVersion;
  uint32_t active_ = kDefaultTableVersion;  // issuing thread only
};

}  // namespace dynamiccl
