// SPDX-License-Identifier: Apache-2.0
// Says where the ranks of this process's communicators find the leader that counts their votes. For this,
// the process writes addresses into unique ids, runs a control server, and sends its own pledges.
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

// The rendezvous point of a communicator that has grown, and its token. The point is invalid if the id lacks
// the block that MarkGrowId writes.
struct GrowRendezvous {
  RendezvousPoint point;
  ControlToken token{};
};

// Reads an id for ranks that join a communicator (MarkGrowId).
GrowRendezvous RendezvousOfGrown(const ncclUniqueId& id);

// Owned by the process's runtime; any thread. If ranks cannot meet, because no server could be started or an
// id has no room, the result is an invalid RendezvousPoint; the reason is logged, and NCCL's choice stays.
class RendezvousPoints {
 public:
  using NewLeadership = std::function<std::unique_ptr<SwitchLeadership>()>;

  // `new_leadership` is called when the server starts. It makes the part of the server that switches tables;
  // null if tables stay as they are.
  RendezvousPoints(const JobSettings& settings, const LoadedChoices& choices, NewLeadership new_leadership)
      : settings_(settings), choices_(choices), new_leadership_(std::move(new_leadership)) {}

  // Writes this process's address into a new unique id as the place where the communicator's ranks meet.
  void MarkUniqueId(ncclUniqueId& id);
  // Returns where the ranks of the communicator with this id meet: the address that MarkUniqueId wrote into
  // the id. Without such an address they meet at DYNAMICCL_RENDEZVOUS, if set, where rank 0 starts its
  // server.
  RendezvousPoint RendezvousOf(const ncclUniqueId& id, int rank);
  // Writes the parent's rendezvous point and the grown communicator's token into an id for ranks that join.
  static void MarkGrowId(const RendezvousPoint& parents, const ControlToken& grown, ncclUniqueId& id);
  // Returns the rendezvous point of a communicator whose ranks are all in this process.
  RendezvousPoint RendezvousInProcess(const ControlToken& token);

  // Returns true if the rendezvous point is this process's server.
  bool IsLocal(const RendezvousPoint& rendezvous);
  // Returns this process's server; null if it was not started.
  ControlServer* server();
  // Returns the sender of pledges; the first call starts it.
  PledgeSender& pledge_sender();
  // Releases at once the pledges about communicators that are gone.
  void ReleaseGone();

  // Returns how many milliseconds ranks wait for one another.
  int attest_timeout_ms() const { return settings_.attest_timeout_ms; }
  // After a rank was missing once, this process does not wait for ranks again.
  bool given_up() const { return given_up_.load(); }
  void GiveUp() { given_up_.store(true); }
  // Like given_up, for votes before NCCL's init.
  bool given_up_inits() const { return given_up_inits_.load(); }
  void GiveUpInits() { given_up_inits_.store(true); }

 private:
  ControlServer* StartServer(const std::vector<std::string>& hosts, uint16_t port);

  const JobSettings& settings_;
  const LoadedChoices& choices_;
  const NewLeadership new_leadership_;
  std::atomic<bool> given_up_{false};
  std::atomic<bool> given_up_inits_{false};
  std::mutex mutex_;  // guards the creation of the next two members, which are never replaced
  std::unique_ptr<ControlServer> server_;
  std::unique_ptr<PledgeSender> pledge_sender_;
};

}  // namespace dynamiccl
