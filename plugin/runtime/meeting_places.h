// SPDX-License-Identifier: Apache-2.0
// Where the ranks of this process's communicators meet to agree, and this process's part in it: what it
// writes into unique ids, the control server where others meet at it, and the sender of its own pledges.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plugin/runtime/control_server.h"
#include "plugin/runtime/loaded_choices.h"
#include "plugin/runtime/pledge_sender.h"
#include "src/decision/control_messages.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// Where the ranks of a communicator that has grown meet, and its token. Without a block in the id the place
// is invalid.
struct GrowMeeting {
  MeetingPoint place;
  ControlToken token{};
};

// What an id for ranks that join a communicator says (MarkGrowId).
GrowMeeting MeetingOfGrown(const ncclUniqueId& id);

// Owned by the process's runtime; any thread. Where ranks cannot meet, because no server could be started or
// an id has no room, the answer is an invalid MeetingPoint, the reason is logged, and NCCL's choice
// stays.
class MeetingPlaces {
 public:
  using NewLeadership = std::function<std::unique_ptr<SwitchLeadership>()>;

  // `new_leadership` makes what the server needs to switch tables (null: tables stay), when it starts.
  MeetingPlaces(const JobSettings& settings, const LoadedChoices& choices, NewLeadership new_leadership)
      : settings_(settings), choices_(choices), new_leadership_(std::move(new_leadership)) {}

  // Writes into a fresh unique id where its ranks meet: at this process.
  void MarkUniqueId(ncclUniqueId& id);
  // Where the ranks of the communicator of this id meet. Where the id does not say, they meet at
  // DYNAMICCL_RENDEZVOUS, if that is set; rank 0 starts its server there.
  MeetingPoint MeetingOf(const ncclUniqueId& id, int rank);
  // Writes into an id for ranks that join a communicator where those that it has meet, and its new name.
  static void MarkGrowId(const MeetingPoint& parents, const ControlToken& grown, ncclUniqueId& id);
  // The place of a communicator whose ranks are all this process's.
  MeetingPoint MeetingInProcess(const ControlToken& token);

  // Whether ranks that meet there meet at this process.
  bool Leads(const MeetingPoint& meeting);
  // This process's server; null while nobody has met here.
  ControlServer* server();
  // Started by the first call.
  PledgeSender& pledge_sender();
  // Has the pledges of communicators that are gone released at once.
  void ReleaseGone();

  // How long ranks wait for one another, in milliseconds.
  int patience_ms() const { return settings_.attest_timeout_ms; }
  // After a rank was missing once, nobody of this process waits again.
  bool given_up() const { return given_up_.load(); }
  void GiveUp() { given_up_.store(true); }
  // The same of the meetings before NCCL's init.
  bool given_up_births() const { return given_up_births_.load(); }
  void GiveUpBirths() { given_up_births_.store(true); }

 private:
  ControlServer* StartServer(const std::vector<std::string>& hosts, uint16_t port);

  const JobSettings& settings_;
  const LoadedChoices& choices_;
  const NewLeadership new_leadership_;
  std::atomic<bool> given_up_{false};
  std::atomic<bool> given_up_births_{false};
  std::mutex mutex_;  // guards the making of the next two; what is made stays
  std::unique_ptr<ControlServer> server_;
  std::unique_ptr<PledgeSender> pledge_sender_;
};

}  // namespace dynamiccl
