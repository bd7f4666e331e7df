// SPDX-License-Identifier: Apache-2.0
// Sends pledges to their leaders and receives the verdicts. It serves pledges for whose verdict nobody waits
// yet, and threads that wait without sockets of their own.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "plugin/runtime/polling_thread.h"
#include "plugin/runtime/socket.h"
#include "src/decision/control_messages.h"
#include "src/decision/pending_verdict.h"
#include "src/decision/voting_member.h"

namespace dynamiccl {

// Owned by the process's RendezvousPoints, which makes it for the first pledge; in a job it is never
// destroyed. Its own thread does the work. It asks again if a leader cannot be reached, or if the leader
// turns this rank away because it does not know the communicator yet.
class PledgeSender {
 public:
  // Milliseconds after which a rank stops waiting for the verdict of a vote before NCCL's init, if it has
  // had no lasting connection to the leader in that time.
  static constexpr int kMaxDisconnectedMs = 30'000;

  // `max_disconnected_ms`: replaces kMaxDisconnectedMs in tests.
  explicit PledgeSender(int max_disconnected_ms = kMaxDisconnectedMs);
  // Resolves every pledge without a verdict with a no.
  ~PledgeSender();

  // Any thread: queues the pledge and returns the object that will hold its verdict. Takes a lock, and wakes
  // the thread. One of these resolves the verdict:
  // - The leader's verdict, which the leader gives within `leader_ms` of the first pledge. If the connection
  //   breaks, or has brought no verdict kAnswerNs after that time, the thread connects again and sends the
  //   pledge again.
  // - "Timed out", if the pledge has not left within `leader_ms`, or if the leader's process ended before it
  //   left.
  // - ReleaseGone, once `*gone` is true.
  // - The end of the leader's process, if that process `has_rank` in the communicator. The communicator is
  //   then dead, and NCCL can fail the call as it would without DynamICCL.
  // - For an init, also the end of the leader's process, or `max_disconnected_ms` without a lasting
  //   connection to it. This rank has not begun NCCL's init then, so NCCL's init succeeds on no rank.
  // Once a pledge may have arrived, no time-out resolves it.
  std::shared_ptr<PendingVerdict> Send(const RendezvousPoint& rendezvous, PledgeMessage pledge, int leader_ms,
                                       std::shared_ptr<const std::atomic<bool>> gone, bool has_rank = false);
  // Any thread: releases at once the pledges about communicators that are gone.
  void ReleaseGone() { thread_.Wake(); }

 private:
  // One pledge under way. Only the thread uses it once it is in sent_.
  struct Sent {
    RendezvousPoint rendezvous;
    PledgeMessage pledge;
    int64_t leader_ns = 0;       // the leader's time for its verdict
    int overdue = 0;             // attempts whose verdict did not come in time
    int64_t reach_until_ns = 0;  // time limit for first reaching the leader
    int64_t next_try_ns = 0;     // when the next attempt is due; while connected: when the verdict is overdue
    int64_t warn_ns = 0;         // when to warn the user that this rank waits; 0: already warned
    int64_t connected_ns = 0;    // when `fd` was made
    int64_t seen_ns = 0;         // for an init: when this pledge was last examined; 0: not pledged yet
    int64_t disconnected_ns = 0;  // for an init: time without a lasting connection
    std::shared_ptr<const std::atomic<bool>> gone;
    std::shared_ptr<PendingVerdict> verdict;
    bool has_rank = false;   // the leader's process is a rank of the communicator
    int64_t refused_ns = 0;  // since when the leader's host refuses connections; 0: it does not
    VotingMember member;
    ControlSocket fd;  // invalid: the pledge must be sent (again)
    std::vector<std::byte> received;
  };

  void Run();
  // Waits for verdicts, wake-ups and deadlines, and receives. Returns false when the thread must end.
  bool WaitAndReceive();
  int TimeoutMs() const;
  void AdoptQueued();
  // Does what is due for one pledge; returns true when the pledge is resolved.
  bool Advance(Sent& sent);
  // Returns after how many nanoseconds the verdict on the pledge just sent is overdue. A leader that has
  // answered none of many attempts is probably busy, and more pledges would keep it busy, so the time
  // doubles.
  static int64_t OverdueNs(const Sent& sent);
  // Makes one attempt to connect and to send the pledge. A connection that has brought no verdict is closed.
  void TryToSend(Sent& sent, int64_t now_ns);
  // Releases a pledge if the leader's host has refused connections for a second: the leader's process has
  // ended.
  static void ReleaseIfLeaderEnded(Sent& sent, bool refused);
  // Releases the pledge about an init if this sender has been without a connection for too long. The rank
  // would otherwise wait for ever, because before NCCL's init there is no communicator to abort.
  void ReleaseIfDisconnected(Sent& sent) const;
  // Warns once if this rank has waited for long.
  void WarnIfLate(Sent& sent, int64_t now_ns) const;
  // Returns false if the connection is over.
  bool Receive(Sent& sent);

  const int64_t max_disconnected_ns_;
  std::mutex mutex_;  // guards queued_
  std::vector<Sent> queued_;
  // Only the thread uses the members below.
  std::list<Sent> sent_;
  int timed_out_ = 0;  // pledges that were never sent
  PollingThread thread_;
};

}  // namespace dynamiccl
