// SPDX-License-Identifier: Apache-2.0
// A rank's end of switching tables (docs/switching.md), for all ranks of this process. Each rank has one
// connection to the leader of its communicator. The leader sends it new tables and their verdicts; it sends
// back pledges, the times that it measured, and digests of what it decided.
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
#include "plugin/runtime/switchable_tables.h"
#include "plugin/times/times_report.h"
#include "src/base/unique_fd.h"
#include "src/decision/control_messages.h"
#include "src/decision/switching/switch_member.h"

namespace dynamiccl {

// Owned by the process's AdaptiveTables. One thread, started with the object, which in a job is never
// stopped. It makes no CUDA call, since one from another thread can invalidate a capture. A leader that
// cannot be reached is tried again; after 30 s a rank that waits for nothing stays with the table that it
// has.
class SwitchThread {
 public:
  // Tables are made from `first`, or from the file at `policy_path` once its digest is the one that the
  // leader names.
  SwitchThread(std::string policy_path, std::shared_ptr<const Policy> first);

  // Any thread: joins the ranks that switch the tables of this communicator. Until all have joined, nothing
  // is switched. `times` may be null: this rank tells none.
  void Join(const MeetingPoint& meeting, const JoinMessage& join, std::shared_ptr<SwitchableTables> tables,
            std::shared_ptr<TimesReport> times = nullptr);
  // Any thread: a rank has times to send.
  void SendTimesSoon() { thread_.Wake(); }
  // Any thread: the communicator is gone. Frees the call that waits at its gate, and ends the connection.
  void Leave(const std::shared_ptr<SwitchableTables>& tables);
  // Any thread: how many calls have begun on this process's rank of a communicator; the most of its ranks
  // where there are several, nothing where there is none.
  std::optional<uint64_t> CallsOf(const ControlToken& communicator);

 private:
  // One rank of this process and its connection to its leader. The thread's own, once it is in links_.
  struct LeaderLink {
    MeetingPoint meeting;
    JoinMessage join;
    std::shared_ptr<SwitchableTables> tables;
    std::shared_ptr<TimesReport> times;  // null: this rank tells none
    SwitchMember member;
    int64_t give_up_ns = 0;      // when the leader is no longer tried, unless the rank waits for it
    int64_t next_digest_ns = 0;  // when the digests of decisions are looked at next
    uint64_t reported_call = 0;  // the last call whose digest the leader has
    int64_t refused_ns = 0;      // since when the leader's host refuses connections; 0: it does not
    UniqueFd fd;                 // invalid: not connected
    std::vector<std::byte> received;
  };

  void Run();
  // Waits for messages, wake-ups and deadlines, and handles the messages. False when the thread is to end.
  bool WaitAndReceive();
  int TimeoutMs() const;
  // Takes over what other threads have joined and left since.
  void UpdateLinks();
  bool IsPresent(const LeaderLink& link) const;
  // Connects where there is no connection, and sends what is due. False when the link is over.
  bool Advance(LeaderLink& link);
  void Connect(LeaderLink& link, int64_t now_ns);
  // The leader's process has ended, and it was a rank of the communicator, which is dead: nobody waits for
  // its verdict any more, so that NCCL can fail the calls as it would without us.
  static void FreeIfLeaderEnded(LeaderLink& link, bool refused, int64_t now_ns);
  // The next four are false when the connection is over.
  bool Receive(LeaderLink& link);
  bool HandleMessage(LeaderLink& link, std::span<const std::byte> message);
  bool HandlePrepare(LeaderLink& link, const SwitchLetter& prepare);
  bool Send(LeaderLink& link, const SwitchSends& sends);
  // Prepares the table that the leader names. True when this rank can use it.
  bool PrepareTable(LeaderLink& link, const SwitchLetter& prepare);
  void HandleVerdict(LeaderLink& link, const SwitchMessage& verdict);
  // Sends the leader the digests of what was decided since the last ones. False as above.
  bool SendDigest(LeaderLink& link, int64_t now_ns);
  static bool SendTimes(LeaderLink& link);

  PolicyByDigest policies_;      // the thread's own
  std::list<LeaderLink> links_;  // likewise
  std::mutex mutex_;             // guards what follows
  std::vector<LeaderLink> new_links_;
  // Ranks that have joined and not left, by communicator: a process may have several ranks of one.
  std::multimap<ControlToken, std::shared_ptr<SwitchableTables>> present_;
  bool any_left_ = false;  // since the thread last updated its links
  PollingThread thread_;
};

}  // namespace dynamiccl
