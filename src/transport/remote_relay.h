// SPDX-License-Identifier: Apache-2.0
// Carries messages between this rank and its peers on other hosts.
//
// For each remote peer this rank has a shadow: a segment with the layout of the peer's own one. This rank
// posts into the shadow as if the peer could see it. The relay sends what was posted over TCP, and the relay
// of the peer puts it into the peer's own segment. Credits come back in the same way. So protocols and
// algorithms need not know that a peer is remote.
//
//   rank A: Post() -> shadow of B -> relay of A == TCP ==> relay of B -> segment of B -> rank B: Release()
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "src/base/fork_guard.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/transport/doorbell.h"
#include "src/transport/relay_inbox.h"
#include "src/transport/relay_outbox.h"
#include "src/transport/segment.h"

namespace dynamiccl {

// Only debug builds compute checksums of frames: they cost a pass over the data, and TCP has its own
// checksums.
#ifdef NDEBUG
inline constexpr bool kRelayChecksums = false;
#else
inline constexpr bool kRelayChecksums = true;
#endif

// Owns the connections to all remote peers of one communicator, and two threads. One thread sleeps on a
// doorbell and sends, the other sleeps in epoll and receives. Neither thread polls. When a peer closes, dies
// or breaks the protocol, on_departed is called once for it; the relay goes on for the other peers.
class RemoteRelay {
 public:
  struct Peer {
    int rank = 0;
    UniqueFd socket;
    std::shared_ptr<Segment> shadow;
  };
  struct Setup {
    int rank = 0;
    std::shared_ptr<Segment> own;
    std::vector<Peer> peers;
    // Called once for each peer that ended, on the receiving thread, after all that the peer had posted has
    // arrived.
    std::function<void(int peer)> on_departed;
    // In milliseconds: how long closing waits for a peer to take what was posted.
    int64_t linger_ms = 0;
    bool checksums = kRelayChecksums;
  };
  // Starts both threads. Returns kUnavailable when the system has no descriptors for epoll.
  static Result<std::unique_ptr<RemoteRelay>> Start(Setup setup);
  // Sends what is posted, tells the peers that this rank leaves, and ends the threads. This may take twice
  // linger_ms.
  ~RemoteRelay();

  // The rank rings this doorbell after posting to a remote peer, after releasing a message of a remote peer,
  // and after completing a launch.
  Doorbell* doorbell() { return &doorbell_; }
  // Cuts all connections at once; messages that are posted but not sent are lost. Any thread may call this.
  void Shutdown();

 private:
  struct Link;
  RemoteRelay(Setup setup, UniqueFd epoll, UniqueFd wake);
  Status Watch();

  void SendLoop();
  bool SendWhatIsPosted();
  bool Collect(Link& link);
  bool CollectFifo(Link& link, int channel, size_t protocol);
  void Flush(Link& link);
  void SayFarewell();

  void ReceiveLoop();
  void Receive(Link& link);
  bool TakeApart(Link& link, std::span<const std::byte> arrived);
  bool Handle(Link& link, RelayInbox::Outcome outcome);
  void Depart(Link& link);
  bool AllDeparted() const;
  void SetWriteInterest(const Link& link, bool wanted);

  Setup setup_;
  UniqueFd epoll_;
  UniqueFd wake_;  // an eventfd that wakes the receiving thread when the relay closes
  std::vector<std::unique_ptr<Link>> links_;
  ForkGuard fork_guard_;  // guards the links' sockets; destroyed before them
  Doorbell doorbell_;
  std::atomic<bool> closing_{false};
  std::atomic<bool> farewell_said_{false};
  std::atomic<bool> cut_{false};
  std::thread sender_;
  std::thread receiver_;
};

}  // namespace dynamiccl
