// SPDX-License-Identifier: Apache-2.0
// The leader's end of the control plane (docs/formats/control_plane.md): it collects the pledges of each
// vote and sends each rank the verdict. Ranks that switch tables stay connected (switch_leadership.h).
#pragma once

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "plugin/runtime/agreed_votes.h"
#include "plugin/runtime/polling_thread.h"
#include "plugin/runtime/socket.h"
#include "plugin/runtime/switch_leadership.h"
#include "src/base/clock.h"
#include "src/decision/attestation.h"
#include "src/decision/control_messages.h"

namespace dynamiccl {

// Owned by the process's RendezvousPoints; in a job it is never destroyed. Its own thread does all the work.
// That thread makes no CUDA call, because a call from another thread can invalidate a graph capture. A
// connection that sends nothing, too little, or something damaged is closed, and the vote goes on without
// it. If a rank is missing at the end of a vote's time, the verdict is a no for all ranks.
class ControlServer {
 public:
  // Listens on the first of `hosts` that belongs to this machine, and starts the thread; `port` 0: any port.
  // A vote lasts `timeout_ms` from its first pledge. Returns an error if it can listen on none of `hosts`.
  static Result<std::unique_ptr<ControlServer>> Start(const std::vector<std::string>& hosts, uint16_t port,
                                                      int timeout_ms,
                                                      std::unique_ptr<SwitchLeadership> switching = nullptr);
  ~ControlServer() { thread_.Stop(); }

  // Any thread: lets ranks meet under `root`. Pledges that come before this are turned away, and their ranks
  // ask again.
  void RegisterRoot(const ControlToken& root, const ControlSecret& secret);
  // Any thread: returns true if ranks may meet here under `root`.
  bool HasRoot(const ControlToken& root) const;

  // Any thread of the leader's process, in mode adaptive: proposes that all ranks of the communicator use
  // this table, beginning at a call that they agree on. Returns false if tables are not switched.
  bool OfferTable(const ControlToken& communicator, TableOffer offer);
  // Any thread: lets the guard watch its communicator. Returns false if tables are not switched.
  bool Guard(std::shared_ptr<TableGuard> guard);
  // At the end of the process: waits at most two seconds until the guards' results are saved.
  void SaveResults();

  const std::string& address() const { return listening_.address; }
  uint16_t port() const { return listening_.port; }

 private:
  // One connection of a rank. The rank sends one pledge and gets the verdict, or it joins the switching of
  // tables.
  struct Peer {
    ControlSocket fd;
    std::vector<std::byte> received;
    int64_t since_ns = 0;
    bool pledged = false;
    bool joined = false;
    ControlToken communicator{};
    int member = 0;
    ControlSecret secret{};
  };
  // One vote with its pledges. The vote is about a communicator, about a communicator before its init, or
  // about a situation.
  struct Vote {
    Vote(int ranks, bool only_with_leader, int64_t deadline)
        : attestation(ranks, only_with_leader),
          deadline_ns(deadline),
          n_ranks(static_cast<size_t>(std::max(ranks, 1))) {}
    Attestation attestation;
    int64_t deadline_ns;
    const size_t n_ranks;
    VoteKind kind = VoteKind::kCommunicator;
    bool ran_out = false;    // the vote lasted its whole time
    std::set<int> answered;  // before an init: members that pledged or declined, in time or later
    std::set<int> informed;  // members to whom a yes was sent
    // True if all ranks have been sent a yes. Such votes move to agreed_, which takes less memory. That
    // matters because a job has a vote for each communicator and for each of its keys.
    bool over() const { return informed.size() >= n_ranks; }
  };

  ControlServer(ListeningSocket listening, int timeout_ms, std::unique_ptr<SwitchLeadership> switching);
  void Run();
  int NextTimeoutMs() const;
  // Accepts all waiting connections. If that fails because descriptors are short, the thread tries again a
  // little later. Until then it does not poll for connections, since a waiting connection would wake the
  // thread at once.
  void AcceptPeers();
  // The next four return false when the connection is to be closed.
  bool Receive(Peer& peer);
  bool HandleFirstMessage(Peer& peer, size_t bytes);
  bool HandlePledge(Peer& peer, const ControlSecret& secret);
  bool HandleSwitching(Peer& peer);
  Vote& VoteOf(const PledgeMessage& pledge);
  // Returns the verdict that this connection waits for; null if there is none yet.
  const Verdict* VerdictOf(const Peer& peer) const;
  // Notes that the verdict was sent to `peer`, and moves a vote that is over to agreed_. A vote that ended
  // with a no is kept, because later pledges are answered with its reason.
  void NoteInformed(const Peer& peer);
  // Returns the vote before the communicator's init if its time ran out and a rank never came; else null.
  const Vote* MissedInit(const PledgeMessage& pledge) const;
  // Refuses at once a vote that could only time out.
  void EndIfHopeless(const PledgeMessage& pledge, Vote& vote);
  // Closes the connections for which `over` is true, and those that have been silent for too long.
  void CloseWhere(const std::vector<bool>& over);
  // Ends the votes whose time is over.
  void Expire();
  void SendVerdicts();
  void SaveIfRequested();

  const ListeningSocket listening_;
  const int64_t timeout_ns_;
  mutable std::mutex mutex_;  // guards secrets_
  std::map<ControlToken, ControlSecret> secrets_;
  PollingThread thread_;  // switching_ wakes this thread, so the thread is destroyed after switching_
  // Only the server's thread uses the members below, up to late_situations_.
  std::vector<Peer> peers_;
  int64_t accept_from_ns_ = 0;  // no connection is accepted before this time; 0: any time
  // Votes are kept, because a rank may ask for its verdict at any later time. Those that are over move to
  // agreed_.
  std::map<ControlToken, Vote> votes_;
  AgreedVotes agreed_;
  const std::unique_ptr<SwitchLeadership> switching_;  // null: tables are not switched
  bool gave_up_ = false;  // ranks were missing too often, so later votes are refused at once
  bool gave_up_inits_ = false;
  int late_situations_ = 0;
  std::mutex ending_mutex_;  // guards the next two
  std::condition_variable saved_;
  enum class SaveState { kNotRequested, kRequested, kDone } save_state_ = SaveState::kNotRequested;
};

}  // namespace dynamiccl
