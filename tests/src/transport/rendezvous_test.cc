// SPDX-License-Identifier: Apache-2.0
#include "src/transport/rendezvous.h"

#include <gtest/gtest.h>

#include <cstring>

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

TEST(Rendezvous, SaysSoWhenTheRootIsGone) {
  const auto all = MeetAtRendezvous({{0x7f000001, 1}, RandomToken(), 0, 2}, {}, 200);
  ASSERT_FALSE(all.has_value());
  EXPECT_FALSE(all.error().hint.empty());
}

}  // namespace
}  // namespace dynamiccl
