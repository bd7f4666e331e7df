// SPDX-License-Identifier: Apache-2.0
// The leader's end of the control plane (docs/formats/control_plane.md): collects the pledges of each meeting
// and sends each rank the verdict. Ranks that switch tables stay connected (switch_leadership.h).
#pragma once

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "plugin/runtime/agreed_meetings.h"
#include "plugin/runtime/polling_thread.h"
#include "plugin/runtime/socket.h"
#include "plugin/runtime/switch_leadership.h"
#include "src/base/clock.h"
#include "src/decision/attestation.h"
#include "src/decision/control_messages.h"

namespace dynamiccl {

// Owned by the process's MeetingPlaces; in a job it is never destroyed. One thread of its own does all the
// work and makes no CUDA call, since one from another thread can invalidate a capture. A connection that
// sends nothing, too little, or something damaged is closed, and the meeting goes on without it; a rank that
// is missing when a meeting's time is over makes the verdict a no for all.
class ControlServer {
 public:
  // Listens on the first of `hosts` that is this machine's and starts the thread; `port` 0: any. A meeting
  // lasts `timeout_ms` from its first pledge. An error when no address of `hosts` can be listened on.
  static Result<std::unique_ptr<ControlServer>> Start(const std::vector<std::string>& hosts, uint16_t port,
                                                      int timeout_ms,
                                                      std::unique_ptr<SwitchLeadership> switching = nullptr);

  // Any thread: lets ranks meet under `root`. Before that their pledges are turned away, and they ask again.
  void Welcome(const ControlToken& root, const ControlSecret& secret);
  // Any thread: whether ranks meet here under `root`.
  bool Welcomes(const ControlToken& root) const;

  // Any thread of the leader's process, in mode adaptive: all ranks of the communicator are to use this
  // table, from a call on that they agree on. False where tables stay as they are.
  bool OfferTable(const ControlToken& communicator, TableOffer offer);
  // Any thread: has the guard watch its communicator. False where tables stay as they are.
  bool Guard(std::shared_ptr<TableGuard> guard);
  // The process ends: waits, for two seconds at most, until what the guards have learnt is kept.
  void KeepLearnt();

  const std::string& address() const { return listening_.address; }
  uint16_t port() const { return listening_.port; }

 private:
  // One connection of a rank: it sends one pledge and gets the verdict, or it joins the switching of tables.
  struct Peer {
    UniqueFd fd;
    std::vector<std::byte> received;
    int64_t since_ns = 0;
    bool pledged = false;
    bool joined = false;
    ControlToken communicator{};
    int member = 0;
    ControlSecret secret{};
  };
  // The pledges about one communicator, birth or situation.
  struct Meeting {
    Meeting(int ranks, bool only_with_leader, int64_t deadline)
        : attestation(ranks, only_with_leader),
          deadline_ns(deadline),
          n_ranks(static_cast<size_t>(std::max(ranks, 1))) {}
    Attestation attestation;
    int64_t deadline_ns;
    const size_t n_ranks;
    MeetingAbout about = MeetingAbout::kCommunicator;
    bool ran_out = false;    // all of its time was waited
    std::set<int> answered;  // of a birth: members that pledged or declined, in time or later
    std::set<int> informed;  // of a situation: members that the verdict was sent to
    // Whether nothing of it is of use any more: there is a meeting for each key of each communicator.
    bool over() const {
      const bool about_situation =
          about == MeetingAbout::kSituation || about == MeetingAbout::kSituationWithLeader;
      return about_situation && attestation.verdict()->agreed && informed.size() >= n_ranks;
    }
  };

  ControlServer(ListeningSocket listening, int timeout_ms, std::unique_ptr<SwitchLeadership> switching);
  void Run();
  int NextTimeoutMs() const;
  void AcceptPeer();
  // The next four are false when the connection is over.
  bool Receive(Peer& peer);
  bool HandleFirstMessage(Peer& peer);
  bool HandlePledge(Peer& peer, const ControlSecret& secret);
  bool HandleSwitching(Peer& peer);
  Meeting& MeetingOf(const PledgeMessage& pledge);
  // The verdict that this connection waits for; null: there is none yet.
  const Verdict* VerdictOf(const Peer& peer) const;
  // `peer` was sent the verdict. Drops a meeting that is over.
  void NoteInformed(const Peer& peer);
  // The meeting about the communicator's birth, if a rank never came to it in all of its time; else null.
  const Meeting* MissedBirth(const PledgeMessage& pledge) const;
  // Refuses a meeting at once that could only time out.
  void EndIfHopeless(const PledgeMessage& pledge, Meeting& meeting);
  // Closes the connections that are marked, and those that have sent nothing for too long.
  void CloseWhere(const std::vector<bool>& over);
  // Ends the meetings whose time is over.
  void Expire();
  void SendVerdicts();
  void KeepIfAsked();

  const ListeningSocket listening_;
  const int64_t timeout_ns_;
  mutable std::mutex mutex_;  // guards secrets_
  std::map<ControlToken, ControlSecret> secrets_;
  // The thread's own.
  std::vector<Peer> peers_;
  // Never forgotten: a rank may ask for a verdict at any later time. Those that are over are in agreed_.
  std::map<ControlToken, Meeting> meetings_;
  AgreedMeetings agreed_;
  const std::unique_ptr<SwitchLeadership> switching_;  // null: tables stay
  bool gave_up_ = false;  // ranks were missing too often: later meetings are refused at once
  bool gave_up_births_ = false;
  int late_situations_ = 0;
  std::mutex ending_mutex_;  // guards the next two
  std::condition_variable kept_;
  enum class Keeping { kNotAsked, kAsked, kDone } keeping_ = Keeping::kNotAsked;
  PollingThread thread_;
};

}  // namespace dynamiccl
