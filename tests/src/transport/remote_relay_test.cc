// SPDX-License-Identifier: Apache-2.0
// Tests two relays over a socket pair, and a receiver's reaction to frames that are not allowed.
#include "src/transport/remote_relay.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <functional>
#include <random>

#include "src/transport/connection.h"
#include "src/transport/socket.h"

namespace dynamiccl {
namespace {

constexpr int64_t kPatienceMs = 20'000;

// Sleeps on the segment's doorbell, as a rank does. Returns false after kPatienceMs.
bool Await(const Segment& segment, const std::function<bool()>& condition) {
  const Deadline deadline = Deadline::After(kPatienceMs);
  while (!condition()) {
    if (deadline.RemainingMs() == 0) return false;
    Doorbell& doorbell = segment.header().doorbell;
    const uint32_t armed = doorbell.Arm();
    condition() ? doorbell.Disarm() : doorbell.Sleep(armed, 1'000'000'000);
  }
  return true;
}

// The side of one rank, 0 or 1.
struct Side {
  std::shared_ptr<Segment> own;
  std::shared_ptr<Segment> shadow;
  std::atomic<bool> peer_departed{false};
  std::unique_ptr<RemoteRelay> relay;

  void Start(int rank, UniqueFd socket) {
    own = *Segment::Create(2);
    shadow = *Segment::Create(2);
    RemoteRelay::Setup setup{.rank = rank,
                             .own = own,
                             .on_departed = [this](int) { peer_departed.store(true); },
                             .linger_ms = kPatienceMs,
                             .checksums = true};
    setup.peers.push_back({1 - rank, std::move(socket), shadow});
    relay = std::move(*RemoteRelay::Start(std::move(setup)));
  }
};

struct SocketPair {
  UniqueFd ends[2];
  SocketPair() {
    int fds[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    ends[0] = UniqueFd(fds[0]);
    ends[1] = UniqueFd(fds[1]);
  }
};

TEST(RemoteRelay, CarriesMessagesAndCredits) {
  SocketPair sockets;
  Side a;
  Side b;
  a.Start(0, std::move(sockets.ends[0]));
  b.Start(1, std::move(sockets.ends[1]));
  constexpr int kChannel = 3;
  SendEnd<kSlots> send(&a.shadow->fifo(0, kChannel).simple, a.relay->doorbell(), nullptr, true);
  ReceiveEnd<kSlots> receive(&b.own->fifo(0, kChannel).simple, b.relay->doorbell(), false);
  std::mt19937_64 random(1);
  // There are more messages than slots, so credits must come back.
  for (uint64_t message = 0; message < 5 * kSlots; ++message) {
    const size_t bytes = message % 4 == 0 ? 0 : random() % (kSlotBytes + 1);
    ASSERT_TRUE(Await(*a.own, [&] { return send.HasCredit(); }));
    auto& slot = a.shadow->fifo(0, kChannel).slots[message % kSlots];
    std::memset(slot, static_cast<int>(message + 1), bytes);
    send.Post(bytes);
    ASSERT_TRUE(Await(*b.own, [&] { return receive.Posted(); })) << message;
    const auto& arrived = b.own->fifo(0, kChannel).slots[message % kSlots];
    EXPECT_TRUE(std::all_of(arrived, arrived + bytes,
                            [&](std::byte byte) { return byte == std::byte(message + 1); }));
    receive.Release();
  }
}

TEST(RemoteRelay, WhatWasPostedArrivesThoughTheSenderLeaves) {
  SocketPair sockets;
  Side a;
  Side b;
  a.Start(0, std::move(sockets.ends[0]));
  b.Start(1, std::move(sockets.ends[1]));
  SendEnd<kLlSlots> send(&a.shadow->fifo(0, 0).ll, a.relay->doorbell(), nullptr, true);
  for (uint64_t message = 0; message < kLlSlots; ++message) {
    a.shadow->fifo(0, 0).lines[message][0].store(message + 100);
    send.Post(5);  // A part of a line occupies a whole line.
  }
  a.own->header().completed_launches.store(7);
  a.relay.reset();
  ASSERT_TRUE(Await(*b.own, [&] { return b.peer_departed.load(); }));
  EXPECT_EQ(b.own->fifo(0, 0).ll.tail.load(), kLlSlots);
  EXPECT_EQ(b.own->fifo(0, 0).lines[kLlSlots - 1][0].load(), kLlSlots + 99);
  EXPECT_EQ(b.shadow->header().completed_launches.load(), 7u);
}

TEST(RemoteRelay, NoticesAPeerThatEndsWithoutAWord) {
  SocketPair sockets;
  Side a;
  a.Start(0, std::move(sockets.ends[0]));
  sockets.ends[1].Reset();
  EXPECT_TRUE(Await(*a.own, [&] { return a.peer_departed.load(); }));
}

// Returns the inbox's outcome for a header and its payload.
RelayInbox::Outcome Offer(RelayInbox& inbox, FrameHeader header, std::span<const std::byte> payload = {}) {
  std::memcpy(inbox.Wanted().data(), &header, sizeof(header));
  const RelayInbox::Outcome outcome = inbox.Arrived(sizeof(header));
  if (outcome != RelayInbox::Outcome::kMore) return outcome;
  std::memcpy(inbox.Wanted().data(), payload.data(), payload.size());
  return inbox.Arrived(payload.size());
}

TEST(RelayInbox, RefusesWhatTheGrammarDoesNotAllow) {
  const auto own = *Segment::Create(2);
  const auto shadow = *Segment::Create(2);
  const std::vector<FrameHeader> bad = {
      {.sequence = 1},
      {.type = FrameType{9}},
      {.protocol = kRelayedProtocols},
      {.channel = kFifosPerPeer},
      {.payload_bytes = kSlotBytes + 1},
      {.payload_bytes = UINT32_MAX},
      {.payload_bytes = 12, .protocol = 1},
      {.value = 1},
      {.value = UINT64_MAX},
      {.checksum = 1},
      {.payload_bytes = 8, .type = FrameType::kCredit},
      {.type = FrameType::kCredit, .value = 1},
      {.payload_bytes = 8, .type = FrameType::kLeave},
  };
  for (size_t i = 0; i < bad.size(); ++i) {
    RelayInbox inbox({0, 1, own, shadow});
    EXPECT_EQ(Offer(inbox, bad[i]), RelayInbox::Outcome::kViolation) << i;
    EXPECT_FALSE(inbox.problem().empty());
  }
  EXPECT_EQ(own->fifo(1, 0).simple.tail.load(), 0u) << "nothing was delivered";
}

TEST(RelayInbox, AMessageNeedsCredit) {
  const auto own = *Segment::Create(2);
  RelayInbox inbox({0, 1, own, *Segment::Create(2)});
  for (uint64_t step = 0; step < kSlots; ++step) {
    EXPECT_EQ(Offer(inbox, {.sequence = step, .value = step}), RelayInbox::Outcome::kDelivered);
  }
  EXPECT_EQ(Offer(inbox, {.sequence = kSlots, .value = kSlots}), RelayInbox::Outcome::kViolation);
}

// The inbox refuses or accepts random bytes that are cut anywhere. It must never write elsewhere, which
// AddressSanitizer checks.
TEST(RelayInbox, SurvivesRandomBytes) {
  const auto own = *Segment::Create(2);
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    RelayInbox inbox({0, 1, own, *Segment::Create(2)});
    auto outcome = RelayInbox::Outcome::kMore;
    for (int part = 0; part < 50 && outcome < RelayInbox::Outcome::kLeft; ++part) {
      const auto wanted = inbox.Wanted();
      ASSERT_FALSE(wanted.empty()) << seed;
      const size_t bytes = 1 + random() % wanted.size();
      // The bytes are mostly small numbers, because more of them are almost valid.
      for (size_t i = 0; i < bytes; ++i) wanted[i] = std::byte(random() % 8 == 0 ? random() % 3 : 0);
      outcome = inbox.Arrived(bytes);
    }
  }
}

}  // namespace
}  // namespace dynamiccl
