// SPDX-License-Identifier: Apache-2.0
// The leader's end of the control plane: one thread that collects pledges, and sends each rank the verdict.
// It makes no CUDA call (one from another thread can invalidate a capture).
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

class ControlServer {
 public:
  // Listens on the first of `hosts` that is this machine's and starts the thread. In a job the object is
  // never destroyed.
  static Result<std::unique_ptr<ControlServer>> Start(const std::vector<std::string>& hosts, uint16_t port,
                                                      int timeout_ms,
                                                      std::unique_ptr<SwitchLeadership> switching = nullptr);

  // Lets ranks meet under `root`; before that their pledges are turned away.
  void Welcome(const ControlToken& root, const ControlSecret& secret);
  // Whether ranks meet here under `root`.
  bool Welcomes(const ControlToken& root) const;

  // Any thread. False where tables stay as they are.
  bool OfferTable(const ControlToken& communicator, TableOffer offer);
  // Likewise. False where nothing is guarded.
  bool Guard(std::shared_ptr<TableGuard> guard);
  // The process ends: waits, for two seconds at most, until what the guards have learnt is kept.
  void KeepLearnt();

  const std::string& address() const { return listening_.address; }
  uint16_t port() const { return listening_.port; }

 private:
  // One rank's connection: it sends one pledge and gets the verdict, or it joins the switching of tables.
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
  struct Meeting {
    Meeting(int ranks, bool only_with_leader, int64_t deadline)
        : attestation(ranks, only_with_leader),
          deadline_ns(deadline),
          n_ranks(static_cast<size_t>(std::max(ranks, 1))) {}
    Attestation attestation;
    int64_t deadline_ns;
    const size_t n_ranks;
    MeetingAbout about = MeetingAbout::kCommunicator;
    bool ran_out = false;  // all of its time was waited
    std::set<int> heard;   // of a birth: members that pledged or declined, in time or later
    std::set<int> told;    // of a situation: members that the verdict was sent to
    // There is one for each key of each communicator, and nothing of it is of use any more.
    bool over() const {
      const bool about_situation =
          about == MeetingAbout::kSituation || about == MeetingAbout::kSituationWithLeader;
      return about_situation && attestation.verdict()->agreed && told.size() >= n_ranks;
    }
  };

  ControlServer(ListeningSocket listening, int timeout_ms, std::unique_ptr<SwitchLeadership> switching);
  void Run();
  int NextTimeoutMs() const;
  void AcceptPeer();
  // False when the connection is over.
  bool Receive(Peer& peer);
  bool TakeFirstMessage(Peer& peer);
  bool TakePledge(Peer& peer, const ControlSecret& secret);
  bool TakeLetters(Peer& peer);
  Meeting& MeetingOf(const PledgeMessage& pledge);
  // Null: there is none yet.
  const Verdict* VerdictOf(const Peer& peer) const;
  // `peer` was told the verdict.
  void NoteTold(const Peer& peer);
  // The meeting about the communicator's birth, where a rank never came to it in all of its time.
  const Meeting* MissedBirth(const PledgeMessage& pledge) const;
  void EndIfHopeless(const PledgeMessage& pledge, Meeting& meeting);
  void CloseWhere(const std::vector<bool>& over);
  void Expire();
  void TellVerdicts();
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
