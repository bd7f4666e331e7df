// SPDX-License-Identifier: Apache-2.0
#include "src/transport/rendezvous.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "src/base/byte_codec.h"
#include "tests/support/spawn_threads.h"

namespace dynamiccl {
namespace {

using testing::SpawnThreads;

std::vector<std::byte> Bytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

RendezvousToken RandomToken() {
  RendezvousToken token;
  FillRandom(token);
  return token;
}

TEST(Rendezvous, EveryRankLeavesWithAllPayloads) {
  const RendezvousToken token = RandomToken();
  const auto root = StartRendezvousRoot("127.0.0.1", token, 10'000);
  ASSERT_TRUE(root.has_value());
  SpawnThreads(4, [&](int rank) {
    const auto all = MeetAtRendezvous({*root, token, rank, 4}, Bytes("rank" + std::to_string(rank)), 10'000);
    ASSERT_TRUE(all.has_value()) << all.error().message;
    for (int other = 0; other < 4; ++other) {
      EXPECT_EQ((*all)[static_cast<size_t>(other)], Bytes("rank" + std::to_string(other)));
    }
  });
}

TEST(Rendezvous, NamesTheRanksThatDidNotCome) {
  const RendezvousToken token = RandomToken();
  const auto root = StartRendezvousRoot("127.0.0.1", token, 200);
  SpawnThreads(2, [&](int index) {
    const auto all = MeetAtRendezvous({*root, token, 2 * index, 4}, {}, 200);
    ASSERT_FALSE(all.has_value());
    EXPECT_EQ(all.error().kind, ErrorKind::kTimeout);
    EXPECT_EQ(all.error().message, "rendezvous: of 4 ranks these did not come within 200 ms: 1, 3");
  });
}

TEST(Rendezvous, IgnoresStrangers) {
  const RendezvousToken token = RandomToken();
  const auto root = StartRendezvousRoot("127.0.0.1", token, 10'000);
  const Deadline deadline = Deadline::After(1000);
  const auto silent = ConnectTcp(*root, deadline);
  const auto noisy = ConnectTcp(*root, deadline);
  ASSERT_TRUE(noisy.has_value());
  EXPECT_TRUE(SendAll(noisy->get(), Bytes(std::string(100, 'x')), deadline).has_value());
  EXPECT_FALSE(MeetAtRendezvous({*root, RandomToken(), 0, 1}, {}, 100).has_value());
  EXPECT_TRUE(MeetAtRendezvous({*root, token, 0, 1}, {}, 10'000).has_value());
}

TEST(Rendezvous, RefusesRanksThatDisagreeOnTheirNumber) {
  const RendezvousToken token = RandomToken();
  const auto root = StartRendezvousRoot("127.0.0.1", token, 5000);
  SpawnThreads(2, [&](int rank) {
    const auto all = MeetAtRendezvous({*root, token, rank, 2 + rank}, {}, 5000);
    ASSERT_FALSE(all.has_value());
    EXPECT_NE(all.error().message.find("was started with"), std::string::npos) << all.error().message;
  });
}

TEST(Rendezvous, RefusesARankThatCannotBe) {
  const auto meet = [](int rank, int n_ranks) {
    const RendezvousToken token = RandomToken();
    const auto root = StartRendezvousRoot("127.0.0.1", token, 5000);
    const auto all = MeetAtRendezvous({*root, token, rank, n_ranks}, {}, 5000);
    return all ? "was met" : all.error().message;
  };
  EXPECT_EQ(meet(4, 4), "rendezvous: a process came as rank 4 of 4");
  EXPECT_EQ(meet(0, 0), "rendezvous: a process came as rank 0 of 0");
  EXPECT_EQ(meet(-1, 4), "rendezvous: a process came as rank 4294967295 of 4");
  EXPECT_EQ(meet(0, INT32_MAX), "rendezvous: a process came as rank 0 of 2147483647");
}

TEST(Rendezvous, BothProcessesOfOneRankHearOfIt) {
  const RendezvousToken token = RandomToken();
  const auto root = StartRendezvousRoot("127.0.0.1", token, 5000);
  SpawnThreads(2, [&](int) {
    const auto all = MeetAtRendezvous({*root, token, 1, 3}, {}, 5000);
    ASSERT_FALSE(all.has_value());
    EXPECT_EQ(all.error().message, "rendezvous: two processes came as rank 1");
  });
}

TEST(Rendezvous, NamesSomeOfManyMissingRanks) {
  const RendezvousToken token = RandomToken();
  const auto root = StartRendezvousRoot("127.0.0.1", token, 50);
  const auto all = MeetAtRendezvous({*root, token, 1, 1 << 20}, {}, 50);
  ASSERT_FALSE(all.has_value());
  EXPECT_EQ(
      all.error().message,
      "rendezvous: of 1048576 ranks these did not come within 50 ms: 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, "
      "13, 14, 15, 16 and 1048559 more");
}

TEST(Rendezvous, EndsInTimeWhileStrangersKeepComing) {
  const RendezvousToken token = RandomToken();
  const auto root = StartRendezvousRoot("127.0.0.1", token, 200);
  std::atomic<bool> met = false;
  std::thread strangers([&] {
    while (!met) (void)ConnectTcp(*root, Deadline::After(100));
  });
  const auto all = MeetAtRendezvous({*root, token, 0, 2}, {}, 200);
  met = true;
  strangers.join();
  ASSERT_FALSE(all.has_value());
  EXPECT_EQ(all.error().message, "rendezvous: of 2 ranks these did not come within 200 ms: 1");
}

// Returns a rank's error if a listener at the root's address sends `answer`.
Error MeetOneThatAnswers(std::span<const std::byte> answer) {
  const auto listener = ListenTcp("127.0.0.1");
  std::thread root([&] {
    const auto socket = Accept(listener->fd.get(), Deadline::After(5000));
    std::byte greeting[48];
    EXPECT_TRUE(ReceiveAll(socket->get(), greeting, Deadline::After(5000)).has_value());
    EXPECT_TRUE(SendAll(socket->get(), answer, Deadline::After(5000)).has_value());
  });
  const auto all = MeetAtRendezvous({listener->address, RandomToken(), 0, 2}, {}, 5000);
  root.join();
  return all ? Error{} : all.error();
}

TEST(Rendezvous, ARankBelievesNoDamagedAnswer) {
  const auto answer = [](uint32_t code, uint32_t bytes, const std::string& body) {
    ByteWriter writer;
    writer.Put(code);
    writer.Put(bytes);
    writer.PutBytes(Bytes(body));
    return MeetOneThatAnswers(writer.buffer());
  };
  const std::string two_payloads("\1\0\0\0a\1\0\0\0b", 10);
  EXPECT_EQ(answer(0, 1u << 30, "").message, "rendezvous: an answer of 1073741824 bytes");
  EXPECT_EQ(answer(1, 1u << 30, "").message, "rendezvous: an answer of 1073741824 bytes");
  EXPECT_EQ(answer(0, 5, two_payloads).kind, ErrorKind::kCorrupt);
  EXPECT_EQ(answer(0, 11, two_payloads + "c").kind, ErrorKind::kCorrupt);
  EXPECT_EQ(answer(0, 10, "ten").kind, ErrorKind::kPeerFailed);
  EXPECT_EQ(answer(77, 3, "why").kind, ErrorKind::kInternal);
  EXPECT_EQ(answer(77, 3, "why").message, "rendezvous: why");
}

TEST(Rendezvous, SaysSoWhenTheRootIsGone) {
  const auto all = MeetAtRendezvous({{0x7f000001, 1}, RandomToken(), 0, 2}, {}, 200);
  ASSERT_FALSE(all.has_value());
  EXPECT_FALSE(all.error().hint.empty());
}

}  // namespace
}  // namespace dynamiccl
