// SPDX-License-Identifier: Apache-2.0
// This process's ends of switching: one thread, started by the first communicator that joins, hears the
// leaders of all its communicators and arms their gates. It makes no CUDA call, and in a job is never
// stopped.
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
#include "plugin/runtime/times_report.h"
#include "src/base/unique_fd.h"
#include "src/decision/control_messages.h"
#include "src/decision/switching/switch_member.h"

namespace dynamiccl {

class SwitchThread {
 public:
  // Tables are made from `first`, or from the file at `policy_path` once its digest is the one that the
  // leader names.
  SwitchThread(std::string policy_path, std::shared_ptr<const Policy> first);

  // Joins the ranks that switch the tables of this communicator. Until all have joined, nothing is switched.
  // `times` may be null: this rank tells none.
  void Join(const MeetingPoint& meeting, const JoinMessage& join, std::shared_ptr<SwitchableTables> tables,
            std::shared_ptr<TimesReport> times = nullptr);
  // Any thread: a rank has times to tell.
  void TellTimes() { thread_.Wake(); }
  // The communicator is gone: frees who waits at its gate, and ends the connection.
  void Leave(const std::shared_ptr<SwitchableTables>& tables);
  // Calls that have begun on a rank of this process.
  std::optional<uint64_t> CallsOf(const ControlToken& communicator);

 private:
  struct Joined {
    MeetingPoint meeting;
    JoinMessage join;
    std::shared_ptr<SwitchableTables> tables;
    std::shared_ptr<TimesReport> times;
    SwitchMember member;
    int64_t reach_until_ns = 0;  // for reaching the leader (again)
    int64_t look_ns = 0;         // when to look for new checkpoints of decisions
    uint64_t told_until = 0;     // call of the last that the leader was told
    int64_t refused_ns = 0;      // since when its host refuses connections; 0: it does not
    UniqueFd fd;                 // invalid: not connected
    std::vector<std::byte> received;
  };

  void Run();
  // False at the end.
  bool WaitForNews();
  int TimeoutMs() const;
  void TakeQueued();
  bool IsPresent(const Joined& joined) const;
  // False when it is over.
  bool GoOn(Joined& joined);
  // The leader's process has ended, and it was a rank of the communicator, which is dead: nobody waits for
  // its verdict any more, so that NCCL can fail the calls as it would without us.
  static void FreeIfLeaderEnded(Joined& joined, bool refused, int64_t now_ns);
  // False when the connection is over.
  bool Receive(Joined& joined);
  bool Hear(Joined& joined, std::span<const std::byte> message);
  bool Send(Joined& joined, const SwitchSends& sends);
  // Tells the leader what was decided since.
  bool SendDigest(Joined& joined, int64_t now_ns);
  static bool SendTimes(Joined& joined);

  PolicyByDigest policies_;   // the thread's own
  std::list<Joined> joined_;  // likewise
  std::mutex mutex_;          // guards what follows
  std::vector<Joined> queued_;
  // By communicator: a process may have several of its ranks.
  std::multimap<ControlToken, std::shared_ptr<SwitchableTables>> present_;
  bool left_ = false;  // somebody did, since the thread looked
  PollingThread thread_;
};

}  // namespace dynamiccl
