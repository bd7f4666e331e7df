// SPDX-License-Identifier: Apache-2.0
// Pledges that nobody waits for yet: one thread of the process sends them and receives the verdicts. It is
// started by the first pledge.
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

class PledgeSender {
 public:
  // A rank that has pledged about a birth is released after so long without a connection to the leader.
  static constexpr int kApartMs = 30'000;

  explicit PledgeSender(int apart_ms = kApartMs);
  // Resolves what has no verdict.
  ~PledgeSender();

  // Takes a lock, and wakes the thread. Resolved by
  //   the leader's verdict; a connection that breaks is made again, and the verdict asked for again
  //   "timed out", when the pledge has not left within `reach_ms`, or the leader's process has ended before
  //   `*gone` and ReleaseGone
  //   the end of the leader's process, where it `has_rank` in the communicator: that is dead then, and NCCL
  //   can fail the call as it would without us for a birth the same, or `apart_ms` without a connection to it
  //   that lasts: this rank has not begun NCCL's init, so that no rank gets out of it with success
  // and by nothing else: a pledge that may have arrived is not resolved by any time-out.
  std::shared_ptr<PendingVerdict> Send(const MeetingPoint& meeting, PledgeMessage pledge, int reach_ms,
                                       std::shared_ptr<const std::atomic<bool>> gone, bool has_rank = false);
  // Any thread: looks at once which communicators are gone.
  void ReleaseGone() { thread_.Wake(); }

 private:
  struct Sent {
    MeetingPoint meeting;
    PledgeMessage pledge;
    int64_t reach_until_ns = 0;  // for the first time that it is said
    int64_t say_ns = 0;          // said not before, while there is no connection
    int64_t complain_ns = 0;     // 0: has been said
    int64_t connected_ns = 0;    // when `fd` was made
    int64_t seen_ns = 0;         // of a birth: when it was last looked at; 0: not pledged yet
    int64_t apart_ns = 0;        // of a birth: without a connection that lasts
    std::shared_ptr<const std::atomic<bool>> gone;
    std::shared_ptr<PendingVerdict> verdict;
    bool has_rank = false;   // the leader's process, in the communicator
    int64_t refused_ns = 0;  // since when its host refuses connections; 0: it does not
    MeetingMember member;
    UniqueFd fd;  // invalid: to be said (again)
    std::vector<std::byte> received;
  };

  void Run();
  bool WaitForNews();
  int TimeoutMs() const;
  void TakeQueued();
  // Lets one pledge go on; true when it is resolved.
  bool GoOn(Sent& sent);
  void Say(Sent& sent, int64_t now_ns);
  // Where its host has refused this rank for a second.
  static void ReleaseIfLeaderEnded(Sent& sent, bool refused);
  // Before NCCL's init no abort can free a rank.
  void ReleaseBirthIfApart(Sent& sent) const;
  void Complain(Sent& sent, int64_t now_ns) const;
  // False when the connection is over.
  bool Receive(Sent& sent);

  const int64_t most_apart_ns_;
  std::mutex mutex_;  // guards queued_
  std::vector<Sent> queued_;
  // The thread's own.
  std::list<Sent> sent_;
  int went_alone_ = 0;
  PollingThread thread_;
};

}  // namespace dynamiccl
