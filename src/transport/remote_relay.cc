// SPDX-License-Identifier: Apache-2.0
// The two threads of the relay. The sending thread compares the counters of all FIFOs with what it has sent,
// and queues frames for the difference. If there is none it sleeps on the doorbell. The receiving thread
// waits in epoll, passes the bytes to the peer's inbox, and rings the rank's doorbell. Both threads write
// only `blocked` and `departed` of a link; all other state belongs to one thread.
#include "src/transport/remote_relay.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "src/base/log.h"
#include "src/transport/socket.h"

namespace dynamiccl {
namespace {

// In nanoseconds. If a wake-up were ever lost, it would cost at most this time; no such case is known.
constexpr int64_t kLongestSleepNs = 1'000'000'000;
// In bytes, the most that one recv(2) reads. Several small frames can arrive with one call.
constexpr size_t kStagingBytes = 64 << 10;

// Blocks all signals while this object lives. Threads started meanwhile inherit the mask, so that the
// program's signals reach the program's own threads.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// Number of uses of an LL or LL128 slot after which the relay sends the whole slot once; otherwise it sends
// only the posted part. The sender clears old flags every 2^27 uses (protocols/ll.cc), and the cleared flags
// must reach the receiver too.
constexpr uint64_t kUsesBetweenWholeSlots = uint64_t{1} << 20;

size_t BytesToCarry(const RelayedSlots& slots, uint64_t step, size_t posted) {
  if (slots.line_bytes == 0) return std::min(posted, slots.slot_bytes);
  if (step / slots.count % kUsesBetweenWholeSlots == kUsesBetweenWholeSlots - 1) return slots.slot_bytes;
  return std::min((posted + slots.line_bytes - 1) / slots.line_bytes * slots.line_bytes, slots.slot_bytes);
}

}  // namespace

// Everything about one remote peer, grouped by the thread that uses it.
struct RemoteRelay::Link {
  Link(Peer from, const Setup& setup)
      : peer(std::move(from)),
        outbox(peer.socket.get(), setup.checksums),
        inbox({setup.rank, peer.rank, setup.own, peer.shadow}),
        staging(kStagingBytes) {}

  Peer peer;
  // The sending thread uses these.
  RelayOutbox outbox;
  std::array<std::array<uint64_t, kRelayedProtocols>, kFifosPerPeer> sent{};      // messages
  std::array<std::array<uint64_t, kRelayedProtocols>, kFifosPerPeer> released{};  // credits
  uint64_t completed = 0;
  // The receiving thread uses these.
  RelayInbox inbox;
  std::vector<std::byte> staging;
  // Both threads use these. `blocked`: the socket's buffer was full, or the peer closed the connection.
  // `departed`: nothing is sent to the peer or received from it any more.
  std::atomic<bool> blocked{false};
  std::atomic<bool> departed{false};
};

Result<std::unique_ptr<RemoteRelay>> RemoteRelay::Start(Setup setup) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.valid() || !wake.valid()) {
    return MakeError(ErrorKind::kUnavailable, "relay to other hosts: {}", ErrnoText(errno));
  }
  std::unique_ptr<RemoteRelay> relay(new RemoteRelay(std::move(setup), std::move(epoll), std::move(wake)));
  DYNAMICCL_CHECK_OK(relay->Watch());
  const BlockedSignals blocked;
  relay->sender_ = std::thread(&RemoteRelay::SendLoop, relay.get());
  relay->receiver_ = std::thread(&RemoteRelay::ReceiveLoop, relay.get());
  return relay;
}

RemoteRelay::RemoteRelay(Setup setup, UniqueFd epoll, UniqueFd wake)
    : setup_(std::move(setup)), epoll_(std::move(epoll)), wake_(std::move(wake)) {
  for (Peer& peer : setup_.peers) {
    fork_guard_.Add(peer.socket.get());
    links_.push_back(std::make_unique<Link>(std::move(peer), setup_));
  }
}

Status RemoteRelay::Watch() {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  bool added = ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) == 0;
  for (const auto& link : links_) {
    event.data.ptr = link.get();
    added = added && ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, link->peer.socket.get(), &event) == 0;
  }
  if (added) return {};
  return MakeError(ErrorKind::kUnavailable, "relay to other hosts: epoll: {}", ErrnoText(errno));
}

RemoteRelay::~RemoteRelay() {
  closing_.store(true, std::memory_order_seq_cst);
  doorbell_.Ring();
  if (sender_.joinable()) sender_.join();
  farewell_said_.store(true, std::memory_order_seq_cst);
  const uint64_t one = 1;
  // This write cannot fail, because the counter of the eventfd is far from its limit.
  if (::write(wake_.get(), &one, sizeof(one)) < 0) Shutdown();
  if (receiver_.joinable()) receiver_.join();
}

void RemoteRelay::Shutdown() {
  cut_.store(true, std::memory_order_seq_cst);
  for (const auto& link : links_) ::shutdown(link->peer.socket.get(), SHUT_RDWR);
  doorbell_.Ring();
}

void RemoteRelay::SendLoop() {
  while (!closing_.load(std::memory_order_seq_cst)) {
    if (SendWhatIsPosted()) continue;
    const uint32_t armed = doorbell_.Arm();
    if (SendWhatIsPosted() || closing_.load(std::memory_order_seq_cst)) {
      doorbell_.Disarm();
      continue;
    }
    doorbell_.Sleep(armed, kLongestSleepNs);
  }
  SayFarewell();
}

bool RemoteRelay::SendWhatIsPosted() {
  bool sent = false;
  for (const auto& link : links_) {
    // Messages posted to a blocked peer wait in its FIFO.
    if (link->departed.load(std::memory_order_acquire) || link->blocked.load(std::memory_order_acquire)) {
      continue;
    }
    sent |= Collect(*link);
    Flush(*link);
  }
  return sent;
}

// Queues frames for what was posted since the last call. The number of completed launches is read first: a
// launch may be reported as completed only after everything that it posted has been queued.
bool RemoteRelay::Collect(Link& link) {
  const uint64_t completed = setup_.own->header().completed_launches.load(std::memory_order_seq_cst);
  bool found = false;
  for (int channel = 0; channel < kFifosPerPeer; ++channel) {
    for (size_t protocol = 0; protocol < kRelayedProtocols; ++protocol) {
      found |= CollectFifo(link, channel, protocol);
    }
  }
  if (completed == link.completed) return found;
  link.completed = completed;
  link.outbox.Add({.type = FrameType::kCompleted, .value = completed});
  return true;
}

// Queues the new messages of one FIFO to the peer, and the credits for messages from the peer.
bool RemoteRelay::CollectFifo(Link& link, int channel, size_t protocol) {
  const auto which = static_cast<RelayedProtocol>(protocol);
  const FrameHeader frame{.protocol = static_cast<uint8_t>(protocol),
                          .channel = static_cast<uint16_t>(channel)};
  const RelayedSlots outgoing = SlotsOf(link.peer.shadow->fifo(setup_.rank, channel), which);
  const RelayedSlots incoming = SlotsOf(setup_.own->fifo(link.peer.rank, channel), which);
  uint64_t& sent = link.sent[static_cast<size_t>(channel)][protocol];
  uint64_t& released = link.released[static_cast<size_t>(channel)][protocol];
  const uint64_t tail = outgoing.tail->load(std::memory_order_seq_cst);
  const uint64_t head = incoming.head->load(std::memory_order_seq_cst);
  const bool found = sent != tail || released != head;
  for (; sent != tail; ++sent) {
    FrameHeader message = frame;
    message.value = sent;
    const size_t posted = outgoing.wire_bytes[sent % outgoing.count].load(std::memory_order_relaxed);
    link.outbox.Add(message, outgoing.slot(sent).first(BytesToCarry(outgoing, sent, posted)));
  }
  if (released != head) {
    FrameHeader credit = frame;
    credit.type = FrameType::kCredit;
    credit.value = released = head;
    link.outbox.Add(credit);
  }
  return found;
}

void RemoteRelay::Flush(Link& link) {
  switch (link.outbox.Flush()) {
    case RelayOutbox::Outcome::kSent:
      return;
    case RelayOutbox::Outcome::kBlocked:
      link.blocked.store(true, std::memory_order_seq_cst);
      SetWriteInterest(link, true);
      return;
    case RelayOutbox::Outcome::kClosed:
      // The peer closed. The receiving thread reads what still arrives and then reports that the peer is
      // gone.
      link.blocked.store(true, std::memory_order_seq_cst);
      return;
  }
}

void RemoteRelay::SetWriteInterest(const Link& link, bool wanted) {
  epoll_event event{.events = EPOLLIN | (wanted ? uint32_t{EPOLLOUT} : 0),
                    .data = {.ptr = const_cast<Link*>(&link)}};
  // This call fails if the receiving thread has meanwhile given the peer up; the failure does no harm.
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, link.peer.socket.get(), &event);
}

// Sends what was posted, tells the peers that nothing follows, and closes the sending half of each
// connection.
void RemoteRelay::SayFarewell() {
  const Deadline deadline = Deadline::After(setup_.linger_ms);
  const auto waiting = [&] {
    return std::any_of(links_.begin(), links_.end(), [](const auto& link) {
      return link->blocked.load(std::memory_order_acquire) && !link->departed.load(std::memory_order_acquire);
    });
  };
  while (SendWhatIsPosted() || waiting()) {
    if (deadline.RemainingMs() == 0 || cut_.load(std::memory_order_acquire)) return Shutdown();
    const uint32_t armed = doorbell_.Arm();
    if (!waiting()) {
      doorbell_.Disarm();
      continue;
    }
    doorbell_.Sleep(armed, int64_t{deadline.RemainingMs()} * 1'000'000);
  }
  for (const auto& link : links_) {
    link->outbox.Add({.type = FrameType::kLeave});
    // If the peer does not take these last few bytes, the closed connection tells it the same.
    (void)link->outbox.Flush();
    ::shutdown(link->peer.socket.get(), SHUT_WR);
  }
}

bool RemoteRelay::AllDeparted() const {
  return std::all_of(links_.begin(), links_.end(),
                     [](const auto& link) { return link->departed.load(std::memory_order_acquire); });
}

// After the farewell the loop still reads until the peers have closed their connections too. Closing a socket
// with unread bytes would reset the connection, and the peer would lose what it has not read yet.
void RemoteRelay::ReceiveLoop() {
  std::array<epoll_event, 16> events;
  Deadline deadline{INT64_MAX};
  while (!AllDeparted()) {
    if (farewell_said_.load(std::memory_order_acquire) && deadline.at_ns == INT64_MAX) {
      deadline = Deadline::After(setup_.linger_ms);
    }
    const int ready = ::epoll_wait(epoll_.get(), events.data(), events.size(), deadline.RemainingMs());
    if (ready == 0 && deadline.at_ns != INT64_MAX) return;
    for (int i = 0; i < ready; ++i) {
      auto* const link = static_cast<Link*>(events[static_cast<size_t>(i)].data.ptr);
      if (link == nullptr) {
        uint64_t count = 0;
        (void)!::read(wake_.get(), &count, sizeof(count));
        continue;
      }
      if ((events[static_cast<size_t>(i)].events & EPOLLOUT) != 0) {
        SetWriteInterest(*link, false);
        link->blocked.store(false, std::memory_order_seq_cst);
        doorbell_.Ring();
      }
      Receive(*link);
    }
  }
}

// Reads once and returns, so that other peers get their turn. If more bytes have arrived, epoll reports the
// socket again.
void RemoteRelay::Receive(Link& link) {
  const std::span<std::byte> wanted = link.inbox.Wanted();
  const bool direct = wanted.size() >= link.staging.size();
  const std::span<std::byte> room = direct ? wanted : std::span(link.staging);
  const ssize_t received = ::recv(link.peer.socket.get(), room.data(), room.size(), MSG_DONTWAIT);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (received <= 0) return Depart(link);
  const auto bytes = static_cast<size_t>(received);
  const bool delivered =
      direct ? Handle(link, link.inbox.Arrived(bytes)) : TakeApart(link, room.first(bytes));
  if (delivered) setup_.own->header().doorbell.Ring();
}

// Passes the bytes of one recv(2), which may hold several frames, to the inbox piece by piece.
bool RemoteRelay::TakeApart(Link& link, std::span<const std::byte> arrived) {
  bool delivered = false;
  while (!arrived.empty() && !link.departed.load(std::memory_order_relaxed)) {
    const std::span<std::byte> wanted = link.inbox.Wanted();
    const size_t part = std::min(wanted.size(), arrived.size());
    std::memcpy(wanted.data(), arrived.data(), part);
    arrived = arrived.subspan(part);
    delivered |= Handle(link, link.inbox.Arrived(part));
  }
  return delivered;
}

// Returns whether the rank may have been waiting for what arrived.
bool RemoteRelay::Handle(Link& link, RelayInbox::Outcome outcome) {
  if (outcome == RelayInbox::Outcome::kViolation) {
    Log(LogLevel::kWarn, "rank {} on another host broke the relay's protocol: {}", link.peer.rank,
        link.inbox.problem());
    ::shutdown(link.peer.socket.get(), SHUT_RDWR);
  }
  if (outcome == RelayInbox::Outcome::kViolation || outcome == RelayInbox::Outcome::kLeft) Depart(link);
  return outcome == RelayInbox::Outcome::kDelivered;
}

// Ends the link: reports the peer as gone, once, and wakes both the rank and the sending thread.
void RemoteRelay::Depart(Link& link) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, link.peer.socket.get(), nullptr);
  link.departed.store(true, std::memory_order_seq_cst);
  // A peer that is still alive ends only after it sees this connection closed.
  ::shutdown(link.peer.socket.get(), SHUT_WR);
  setup_.on_departed(link.peer.rank);
  setup_.own->header().doorbell.Ring();
  doorbell_.Ring();
}

}  // namespace dynamiccl
