// SPDX-License-Identifier: Apache-2.0
// A rank's end of switching tables (docs/switching.md), for all ranks of this process. Each rank has one
// connection to the leader of its communicator. The leader sends new tables and verdicts; the rank sends
// pledges, measured times, and digests of its decisions.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plugin/runtime/changed_policy.h"
#include "plugin/runtime/polling_thread.h"
#include "plugin/runtime/socket.h"
#include "plugin/runtime/switchable_tables.h"
#include "plugin/times/times_report.h"
#include "src/decision/control_messages.h"
#include "src/decision/switching/switch_member.h"

namespace dynamiccl {

// Owned by the process's AdaptiveTables. It has one thread, which starts with the object and in a job is
// never stopped. The thread makes no CUDA call, because a call from another thread can invalidate a graph
// capture. It keeps trying to reach an absent leader; after 30 s a rank that waits for no verdict keeps its
// present table for good.
class SwitchThread {
 public:
  // Milliseconds without a lasting connection after which a rank that waits for no verdict gives up its
  // leader.
  static constexpr int kReachMs = 30'000;

  // Tables are made from `first`, or from the file at `policy_path` if that has the digest that the leader
  // names.
  // `reach_ms`: replaces kReachMs in tests.
  SwitchThread(std::string policy_path, std::shared_ptr<const Policy> first, int reach_ms = kReachMs);

  // Any thread: adds a rank to those that switch the tables of this communicator. Nothing is switched before
  // all ranks have joined. `times` may be null: this rank reports no times.
  void Join(const RendezvousPoint& rendezvous, const JoinMessage& join,
            std::shared_ptr<SwitchableTables> tables, std::shared_ptr<TimesReport> times = nullptr);
  // Any thread: a rank has enough times to send.
  void SendTimesSoon() { thread_.Wake(); }
  // Any thread: asks the leader to propose a live value to all ranks of the communicator. A later proposal
  // for the same name replaces one that was not sent yet. Returns false if this process has no rank that
  // switches.
  bool Propose(const ControlToken& communicator, ProposedValue proposed);
  // Any thread: the live values that the ranks of this process have agreed on, on all communicators.
  AgreedValues Values();
  // Any thread: notes that the communicator is gone. Releases the call that waits at the communicator's gate,
  // and ends the connection.
  void Leave(const std::shared_ptr<SwitchableTables>& tables);
  // Any thread: returns how many calls have begun on this process's rank of a communicator. With several such
  // ranks it returns the largest number; nothing if there is none.
  std::optional<uint64_t> CallsOf(const ControlToken& communicator);

 private:
  // One rank of this process and its connection to its leader. Only the thread uses it once it is in links_.
  struct LeaderLink {
    RendezvousPoint rendezvous;
    JoinMessage join;
    std::shared_ptr<SwitchableTables> tables;
    std::shared_ptr<TimesReport> times;  // null: this rank reports no times
    SwitchMember member;
    int64_t joined_ns = 0;
    int64_t give_up_ns = 0;      // when to give up the leader, unless the rank waits for a verdict
    int64_t connected_ns = 0;    // when `fd` was made
    int64_t next_try_ns = 0;     // while not connected: when the next attempt is due
    int pause_ms = 0;            // pause before the attempt that follows a connection which did not last
    int64_t next_digest_ns = 0;  // when the digests of decisions are reported next
    uint64_t reported_call = 0;  // the last call whose digest was sent to the leader
    int64_t refused_ns = 0;      // since when the leader's host refuses connections; 0: it does not
    // `proposed` holds all values that this rank has proposed, `unsent` those that were not sent on this
    // connection yet. A leader that has no rank yet refuses connections, so each new connection sends all
    // proposals.
    AgreedValues proposed{};
    AgreedValues unsent{};
    ControlSocket fd;  // invalid: not connected
    std::vector<std::byte> received;
  };

  void Run();
  // Moves proposals of other threads to their links.
  void TakeProposals();
  // Waits for messages, wake-ups and deadlines, and handles the messages. Returns false if the thread must
  // end.
  bool WaitAndReceive();
  int TimeoutMs() const;
  // Takes over new links, and removes the links that other threads have asked to leave.
  void UpdateLinks();
  bool IsPresent(const LeaderLink& link) const;
  // Connects if there is no connection, and sends what is due. Returns false if the link is to be removed.
  bool Advance(LeaderLink& link);
  void Connect(LeaderLink& link, int64_t now_ns);
  // The connection is over. Messages may be lost, and a rank that has pledged needs its verdict, so the
  // thread connects again. If the leader ends each connection at once, as it does without a rank of its own,
  // the pauses between attempts grow, and the time after which the rank gives up does not begin anew.
  void Disconnect(LeaderLink& link, int64_t now_ns) const;
  // If the leader's process has ended, the communicator is dead, because the leader was one of its ranks. In
  // that case this function releases the calls that wait for the leader's verdict, so that NCCL can fail them
  // as it would without DynamICCL.
  static void FreeIfLeaderEnded(LeaderLink& link, bool refused, int64_t now_ns);
  // The next four return false if the connection is over.
  bool Receive(LeaderLink& link);
  bool HandleMessage(LeaderLink& link, std::span<const std::byte> message);
  bool HandlePrepare(LeaderLink& link, const TableSwitchMessage& prepare);
  bool Send(LeaderLink& link, const SwitchSends& sends);
  // Prepares the table that the leader names. Returns true if this rank can use it.
  bool PrepareTable(LeaderLink& link, const TableSwitchMessage& prepare);
  void HandleVerdict(LeaderLink& link, const SwitchMessage& verdict);
  // Sends the leader the digests of decisions since the last report. Returns false if the connection is over.
  bool SendDigest(LeaderLink& link, int64_t now_ns);
  static bool SendTimes(LeaderLink& link);
  static bool SendProposals(LeaderLink& link);

  const int64_t reach_ns_;
  PolicyByDigest policies_;      // used only by the thread
  std::list<LeaderLink> links_;  // used only by the thread
  std::mutex mutex_;             // guards the members below
  std::vector<LeaderLink> new_links_;
  // Ranks that have joined and not left, by communicator; a process may have several ranks of one
  // communicator.
  std::multimap<ControlToken, std::shared_ptr<SwitchableTables>> present_;
  bool any_left_ = false;  // since the thread last updated its links
  std::vector<std::pair<ControlToken, ProposedValue>> proposals_;
  PollingThread thread_;
};

}  // namespace dynamiccl
