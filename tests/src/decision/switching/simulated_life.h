// SPDX-License-Identifier: Apache-2.0
// Decides who acts next in one simulated life of a communicator: issuing threads, control threads and
// messages in virtual time, with stalls, crashes and an abort, all from one seed. The derived class says what
// ranks do and send. After enough decisions the faults stop, and all ranks must reach an end that the derived
// class defines.
//
// Message: what the network carries. Counts: a struct of uint64_t with the numbers that are counted here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tests/src/decision/switching/simulated_network.h"
#include "tests/src/decision/switching/simulated_seeds.h"

namespace dynamiccl::testing {

// The part of a rank's state that time and faults act upon.
struct SimulatedRank {
  int index = 0;
  uint64_t next_call = 0;
  bool waiting = false;  // The rank waits for a verdict.
  bool blocked = false;  // The rank waits for the slowest rank.
  bool crashed = false;
  int64_t call_ns = 0;  // The time at which the rank issues its next call or continues.
  int64_t tick_ns = 0;
  int64_t control_free_ns = 0;  // The rank's control thread does nothing before this time.
  uint64_t messages = 0;        // The number of messages sent.
};

template <class Message, class Counts>
class SimulatedLife {
 public:
  // The number of decisions before the faults of a life stop lies between these two.
  static constexpr int64_t kLeastDecisions = 200;
  static constexpr int64_t kMostDecisions = 6'000;

  virtual ~SimulatedLife() = default;
  SimulatedLife(const SimulatedLife&) = delete;
  SimulatedLife& operator=(const SimulatedLife&) = delete;

  // Runs the life. Returns the failure, or an empty text if there is none.
  std::string Live(Counts& counts) {
    while (!over_ && failure_.empty()) Step();
    counts_.lives = 1;
    counts_.lost_messages = network_.lost();
    AddCounts(counts_, counts);
    return failure_;
  }

 protected:
  using Event = SimulatedEvent<Message>;

  SimulatedLife(uint64_t seed, uint64_t decisions, SimulatedFaults (*draw)(SeededRandom&))
      : random_(seed),
        faults_(draw(random_)),
        network_(faults_, random_),
        abort_ns_(faults_.abort_ns),
        decisions_until_calm_(decisions) {}

  // Adds a rank, which must outlive this object. The first faults_.n_ranks of them issue calls.
  void Add(SimulatedRank& rank) {
    rank.index = static_cast<int>(ranks_.size());
    ranks_.push_back(&rank);
  }

  // Lets the issuing thread of a rank do its next step.
  virtual void Call(SimulatedRank& rank) = 0;
  // Lets the control thread of a rank do its next step, without a message.
  virtual void ControlStep(SimulatedRank& rank) = 0;
  virtual void Handle(SimulatedRank& rank, const Event& event) = 0;
  // Is called when the process has died. Schedules the events by which other ranks notice.
  virtual void ScheduleNotice(const SimulatedRank& rank) = 0;
  // Is called when all ranks know that the communicator is aborted.
  virtual void Abort() = 0;
  // Is called when the faults have stopped. Sets deadline_ns_.
  virtual void BeginCalm() = 0;
  // Ends the life, or reports what has not ended in time.
  virtual void CheckConvergence() = 0;

  // Returns true if the rank's next call must wait for the slowest rank, which will wake it.
  bool BlockedBySlowest(SimulatedRank& rank) {
    if (rank.next_call < Slowest() + faults_.run_ahead) return false;
    rank.blocked = true;
    rank.call_ns = kNeverNs;
    return true;
  }

  // Returns the decision of the first rank that came to this call. All other ranks must decide the same.
  uint64_t FirstDecision(const SimulatedRank& rank, uint64_t decision) {
    const uint64_t call = rank.next_call;
    if (call >= decided_.size()) decided_.resize(call + 1, kUndecided);
    if (decided_[call] == kUndecided) decided_[call] = decision;
    ++counts_.decisions;
    decided_ns_ = now_;
    return decided_[call];
  }

  void FinishCall(SimulatedRank& rank) {
    const uint64_t slowest = Slowest();
    ++rank.next_call;
    rank.call_ns = now_ + 1 + random_.Waiting(faults_.call_ns);
    if (random_.Chance(faults_.call_stalls)) rank.call_ns += Stall();
    if (random_.Chance(faults_.process_stalls)) {
      rank.call_ns += Stall();
      rank.control_free_ns = rank.call_ns;
    }
    if (Slowest() == slowest) return;
    for (SimulatedRank* other : ranks_) {
      if (std::exchange(other->blocked, false)) other->call_ns = now_;
    }
  }

  uint64_t Slowest() const {
    uint64_t slowest = UINT64_MAX;
    for (int i = 0; i < faults_.n_ranks; ++i)
      slowest = std::min(slowest, ranks_[static_cast<size_t>(i)]->next_call);
    return slowest;
  }

  // Sends a message. Returns false if the rank died while it sent.
  bool Send(SimulatedRank& from, int to, const Message& message) {
    if (from.index == faults_.crashing_rank && ++from.messages >= faults_.crash_at_message) {
      Crash(from);
      return false;
    }
    network_.Send(now_, from.index, to, message);
    return true;
  }

  // Wakes a rank that waits, because a verdict may have come.
  void WakeWaiting(SimulatedRank& rank) {
    if (rank.waiting && !rank.crashed) rank.call_ns = now_;
  }

  static constexpr uint64_t kUndecided = ~uint64_t{0};

  SeededRandom random_;
  SimulatedFaults faults_;
  SimulatedNetwork<Message> network_;
  int64_t now_ = 0;
  int64_t abort_ns_;
  int64_t deadline_ns_ = kNeverNs;
  bool calm_ = false;
  bool over_ = false;
  Counts counts_;
  std::string failure_;

 private:
  void Step() {
    int64_t when = network_.next_ns();
    SimulatedRank* acting = nullptr;
    bool is_call = false;
    for (SimulatedRank* rank : ranks_) {
      if (rank->call_ns < when) when = rank->call_ns, acting = rank, is_call = true;
      if (rank->tick_ns < when) when = rank->tick_ns, acting = rank, is_call = false;
    }
    now_ = when;
    if (now_ >= abort_ns_) {
      over_ = true;
      return Abort();
    }
    if (acting == nullptr) {
      Deliver(network_.Take());
    } else if (is_call) {
      Call(*acting);
    } else {
      Tick(*acting);
    }
    // One rank that can never be reached again may delay all others.
    const bool enough = counts_.decisions >= decisions_until_calm_ || now_ > decided_ns_ + kHeldUpNs;
    if (!calm_ && enough && abort_ns_ == kNeverNs) BecomeCalm();
    if (calm_) CheckConvergence();
  }

  void Tick(SimulatedRank& rank) {
    if (now_ < rank.control_free_ns) {
      rank.tick_ns = rank.control_free_ns;
      return;
    }
    rank.tick_ns = now_ + 1 + random_.Waiting(faults_.tick_ns);
    if (random_.Chance(faults_.control_stalls)) rank.control_free_ns = now_ + Stall();
    ControlStep(rank);
  }

  void Deliver(const Event& event) {
    SimulatedRank& rank = *ranks_[static_cast<size_t>(event.to)];
    if (rank.crashed) return;
    // An answer that is due is the work that the thread was busy with.
    if (now_ >= rank.control_free_ns || event.kind == Event::Kind::kAnswerDue) return Handle(rank, event);
    Event later = event;
    later.due_ns = rank.control_free_ns;
    network_.Schedule(later);
  }

  void Crash(SimulatedRank& rank) {
    rank.crashed = true;
    rank.waiting = rank.blocked = false;
    rank.call_ns = rank.tick_ns = kNeverNs;
    ++counts_.crashes;
    ScheduleNotice(rank);
    // A collective cannot end without the rank, so sooner or later a watchdog aborts the communicator.
    abort_ns_ = std::min(abort_ns_, now_ + random_.AcrossScales(1'000'000, 4'000'000'000));
  }

  void BecomeCalm() {
    calm_ = true;
    StopFaults(faults_);
    for (SimulatedRank* rank : ranks_) {
      rank->control_free_ns = std::min(rank->control_free_ns, now_ + 1'000'000);
      rank->tick_ns = std::min(rank->tick_ns, now_ + faults_.tick_ns);
      rank->call_ns = rank->call_ns == kNeverNs ? kNeverNs : std::min(rank->call_ns, now_ + faults_.call_ns);
    }
    BeginCalm();
  }

  int64_t Stall() { return random_.AcrossScales(100'000, 2'000'000'000); }

  static constexpr int64_t kHeldUpNs = 10'000'000'000;  // This is longer than any fault that ends by itself.

  std::vector<SimulatedRank*> ranks_;
  std::vector<uint64_t> decided_;  // By call.
  const uint64_t decisions_until_calm_;
  int64_t decided_ns_ = 0;
};

}  // namespace dynamiccl::testing
