// SPDX-License-Identifier: Apache-2.0
// Carries the FIFOs between this rank and its peers on other hosts.
//
// A shadow segment of the same layout stands in for each remote peer. This rank posts into the shadow as if
// the peer could see it; the relay carries what was posted over TCP into the peer's own segment. Credits come
// back in the same way. So protocols and algorithms do not know whether a peer is remote.
//
//   rank A: Post() -> shadow of B -> relay of A == TCP ==> relay of B -> segment of B -> rank B: Release()
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/transport/doorbell.h"
#include "src/transport/relay_inbox.h"
#include "src/transport/relay_outbox.h"
#include "src/transport/segment.h"

namespace dynamiccl {

// Checksums cost a pass over the data and TCP has its own, so only debug builds compute them.
#ifdef NDEBUG
inline constexpr bool kRelayChecksums = false;
#else
inline constexpr bool kRelayChecksums = true;
#endif

// Owns the connections to all remote peers of one communicator and two threads: one sleeps on a doorbell and
// sends, one sleeps in epoll and receives. Neither polls. A peer that closes, dies or breaks the protocol is
// reported once by on_departed; the relay then goes on for the others.
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
    // Called once a peer, on the receiving thread, when all that the peer posted before it ended has arrived.
    std::function<void(int peer)> on_departed;
    // Milliseconds that closing waits for a peer to take what was posted.
    int64_t linger_ms = 0;
    bool checksums = kRelayChecksums;
  };
  // Starts both threads. kUnavailable when the system has no descriptors for epoll.
  static Result<std::unique_ptr<RemoteRelay>> Start(Setup setup);
  // Sends what is posted, tells the peers that this rank leaves, and ends the threads. It may take linger_ms
  // twice.
  ~RemoteRelay();

  // Ring it after posting to a remote peer, after releasing a message of one, and after completing a launch.
  Doorbell* doorbell() { return &doorbell_; }
  // Cuts all connections at once; what is posted is lost. Any thread.
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
  Doorbell doorbell_;
  std::atomic<bool> closing_{false};
  std::atomic<bool> farewell_said_{false};
  std::atomic<bool> cut_{false};
  std::thread sender_;
  std::thread receiver_;
};

}  // namespace dynamiccl
