// SPDX-License-Identifier: Apache-2.0
// Carries the FIFOs between this rank and its peers on other hosts. A remote peer's place is taken by a
// shadow segment of the same layout: this rank posts into it as if the peer could see it, and the relay
// carries what was posted over TCP into the peer's own segment; credits come back the same way.
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

#ifdef NDEBUG
inline constexpr bool kRelayChecksums = false;
#else
inline constexpr bool kRelayChecksums = true;
#endif

// Two threads: one sleeps on a doorbell and sends, one sleeps in epoll and receives; neither polls.
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
    // All that the peer posted before it ended has arrived; on a thread of the relay, once a peer.
    std::function<void(int peer)> on_departed;
    // How long closing waits for a peer to take what was posted.
    int64_t linger_ms = 0;
    bool checksums = kRelayChecksums;
  };
  static Result<std::unique_ptr<RemoteRelay>> Start(Setup setup);
  // Sends what is posted, tells the peers, ends the threads.
  ~RemoteRelay();

  // To be rung when something was posted to a remote peer, released to it, or a launch completed.
  Doorbell* doorbell() { return &doorbell_; }
  // Cuts all connections at once. Any thread.
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
  UniqueFd wake_;  // eventfd: rung for the receiving thread when this relay closes
  std::vector<std::unique_ptr<Link>> links_;
  Doorbell doorbell_;
  std::atomic<bool> closing_{false};
  std::atomic<bool> farewell_said_{false};
  std::atomic<bool> cut_{false};
  std::thread sender_;
  std::thread receiver_;
};

}  // namespace dynamiccl
