// SPDX-License-Identifier: Apache-2.0
// Pledges whose verdict nobody waits for yet, or a thread waits for without sockets of its own: sends them to
// their leaders and receives the verdicts.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "plugin/runtime/polling_thread.h"
#include "src/base/unique_fd.h"
#include "src/decision/control_messages.h"
#include "src/decision/meeting_member.h"
#include "src/decision/pending_verdict.h"

namespace dynamiccl {

// Owned by the process's MeetingPlaces, which makes it for the first pledge; in a job it is never destroyed.
// One thread of its own does the work. A leader that cannot be reached, or turns this rank away because it
// does not know the communicator yet, is asked again.
class PledgeSender {
 public:
  // A rank that has pledged about a birth is released after 30 s without a connection to the leader.
  static constexpr int kApartMs = 30'000;

  // `apart_ms`: another time than kApartMs, for tests.
  explicit PledgeSender(int apart_ms = kApartMs);
  // Resolves what has no verdict with a no.
  ~PledgeSender();

  // Any thread: sends the pledge, and returns where its verdict will be. Takes a lock, and wakes the thread.
  // The verdict is resolved by
  //   - the leader's verdict; a connection that breaks is made again, and the verdict asked for again;
  //   - "timed out", when the pledge has not left within `reach_ms`, or the leader's process has ended
  //   before;
  //   - `*gone` and ReleaseGone;
  //   - the end of the leader's process, where it `has_rank` in the communicator: that is dead then, and NCCL
  //     can fail the call as it would without us;
  //   - for a birth also by the end of the leader's process, or `apart_ms` without a connection to it that
  //   lasts:
  //     this rank has not begun NCCL's init, so that no rank gets out of it with success.
  // Nothing else resolves it: a pledge that may have arrived is not resolved by any time-out.
  std::shared_ptr<PendingVerdict> Send(const MeetingPoint& meeting, PledgeMessage pledge, int reach_ms,
                                       std::shared_ptr<const std::atomic<bool>> gone, bool has_rank = false);
  // Any thread: releases the pledges of communicators that are gone, at once.
  void ReleaseGone() { thread_.Wake(); }

 private:
  // One pledge on its way. The thread's own, once it is in sent_.
  struct Sent {
    MeetingPoint meeting;
    PledgeMessage pledge;
    int64_t reach_until_ns = 0;  // the leader must be reached for the first time before
    int64_t next_try_ns = 0;     // without a connection: when the next attempt is due
    int64_t warn_ns = 0;         // when the user is told why this rank waits; 0: that is done
    int64_t connected_ns = 0;    // when `fd` was made
    int64_t seen_ns = 0;         // of a birth: when it was last looked at; 0: not pledged yet
    int64_t apart_ns = 0;        // of a birth: time without a connection that lasts
    std::shared_ptr<const std::atomic<bool>> gone;
    std::shared_ptr<PendingVerdict> verdict;
    bool has_rank = false;   // the leader's process, in the communicator
    int64_t refused_ns = 0;  // since when its host refuses connections; 0: it does not
    MeetingMember member;
    UniqueFd fd;  // invalid: to be sent (again)
    std::vector<std::byte> received;
  };

  void Run();
  // Waits for verdicts, wake-ups and deadlines, and receives. False when the thread is to end.
  bool WaitAndReceive();
  int TimeoutMs() const;
  void AdoptQueued();
  // Does what is due for one pledge; true when it is resolved.
  bool Advance(Sent& sent);
  // One attempt to connect and send the pledge.
  void TryToSend(Sent& sent, int64_t now_ns);
  // Releases a pledge whose leader's host has refused this rank for a second: its process has ended.
  static void ReleaseIfLeaderEnded(Sent& sent, bool refused);
  // Releases a birth that has no connection for too long: before NCCL's init no abort can free a rank.
  void ReleaseBirthIfApart(Sent& sent) const;
  // Warns once that this rank waits, when it has waited for long.
  void WarnIfLate(Sent& sent, int64_t now_ns) const;
  // False when the connection is over.
  bool Receive(Sent& sent);

  const int64_t most_apart_ns_;
  std::mutex mutex_;  // guards queued_
  std::vector<Sent> queued_;
  // The thread's own.
  std::list<Sent> sent_;
  int timed_out_ = 0;  // pledges that never left
  PollingThread thread_;
};

}  // namespace dynamiccl
