// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "src/transport/link_client.h"
#include "src/transport/link_server.h"

namespace dynamiccl {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Returns links between two nodes of two ranks, with two rails between the nodes and shaped links inside
// them.
std::shared_ptr<const EmulatedLinks> SomeLinks() {
  Topology topology;
  topology.nodes = 2;
  topology.rails = 2;
  topology.intra = LinkShape{.latency_us = 20, .bandwidth_gbps = 5};
  topology.inter = LinkShape{.latency_us = 30, .bandwidth_gbps = 1};
  auto states = Segment::Create(4);
  EXPECT_TRUE(states.has_value());
  return std::make_shared<EmulatedLinks>(topology, std::vector<int>{0, 0, 1, 1}, *states);
}

LinkRequest SetLatency(const LinkTarget& target, double latency_us, int64_t for_ns = 0) {
  LinkRequest request{.kind = LinkRequestKind::kSet, .target = target, .for_ns = for_ns};
  request.change.Set(0, latency_us);
  return request;
}

// Returns the latency of an empty message posted `after_ns` from the clock's start, in ns.
int64_t LatencyOf(const EmulatedLinks& links, int from, int to, int channel, int64_t after_ns = 0) {
  const int64_t now = links.clock().epoch_ns + after_ns;
  return links.Link(from, to, channel)->Schedule(now, 0) - now;
}

TEST(LinkControl, AnOrderReachesTheLinksThatItNames) {
  const auto links = SomeLinks();
  const LinkAnswer answer = AnswerLinkRequest(SetLatency({.from = 0, .to = 1, .rail = 1}, 500), {links});
  EXPECT_EQ(answer.refused, "");
  EXPECT_EQ(answer.changed, 1u);
  EXPECT_EQ(LatencyOf(*links, 0, 2, 1), 500'000);
  EXPECT_EQ(LatencyOf(*links, 0, 2, 0), 30'000) << "the other rail";
  EXPECT_EQ(LatencyOf(*links, 2, 0, 1), 30'000) << "the other direction";
  EXPECT_EQ(AnswerLinkRequest(SetLatency({.from = 1, .to = 1}, 70), {links}).changed, 2u);
  EXPECT_EQ(LatencyOf(*links, 2, 3, 0), 70'000);
  EXPECT_EQ(LatencyOf(*links, 0, 1, 0), 20'000);
}

TEST(LinkControl, AnOrderEndsByItselfOrByReset) {
  const auto links = SomeLinks();
  AnswerLinkRequest(SetLatency({}, 500, 10 * kSecond), {links});
  EXPECT_EQ(LatencyOf(*links, 0, 2, 0, 9 * kSecond), 500'000);
  EXPECT_EQ(LatencyOf(*links, 0, 2, 0, 3600 * kSecond), 30'000);
  AnswerLinkRequest(SetLatency({}, 600), {links});
  EXPECT_EQ(LatencyOf(*links, 0, 2, 0, 3600 * kSecond), 600'000);
  EXPECT_EQ(AnswerLinkRequest({.kind = LinkRequestKind::kReset}, {links}).changed, 4u);
  EXPECT_EQ(LatencyOf(*links, 0, 2, 0, 7200 * kSecond), 30'000);
}

TEST(LinkControl, ShowsEachLinkAsItIsWithItsTraffic) {
  const auto links = SomeLinks();
  links->NoteCall(12);
  AnswerLinkRequest(SetLatency({.from = 1, .to = 0, .rail = 0}, 500), {links});
  links->Link(2, 0, 0)->Schedule(0, 1000);
  links->Link(3, 1, 2)->Schedule(0, 500);
  links->Link(0, 1, 0)->Schedule(0, 7);
  links->Link(1, 0, 0)->Schedule(0, 8);
  const LinkAnswer answer = AnswerLinkRequest({}, {links});
  ASSERT_EQ(answer.jobs.size(), 1u);
  const LinkJob& job = answer.jobs[0];
  EXPECT_EQ(job.n_ranks, 4);
  EXPECT_EQ(job.calls, 12);
  ASSERT_EQ(job.rows.size(), 6u) << "two rails in two directions, and the inside of two nodes";
  const auto row = [&](int from, int to, int rail) {
    return *std::find_if(job.rows.begin(), job.rows.end(), [&](const LinkRow& candidate) {
      return candidate.from == from && candidate.to == to && candidate.rail == rail;
    });
  };
  EXPECT_EQ(row(1, 0, 0).messages, 2u);
  EXPECT_EQ(row(1, 0, 0).bytes, 1500u);
  EXPECT_TRUE(row(1, 0, 0).ordered);
  EXPECT_EQ(row(1, 0, 0).shape.latency_us, 500);
  EXPECT_FALSE(row(1, 0, 1).ordered);
  EXPECT_EQ(row(0, 0, 0).messages, 2u) << "both directions of the two ranks";
  EXPECT_EQ(row(0, 0, 0).bytes, 15u);
}

TEST(LinkControl, RefusesWhatFitsNoLink) {
  const auto links = SomeLinks();
  EXPECT_EQ(AnswerLinkRequest(SetLatency({.from = 0, .to = 7}, 1), {links}).refused,
            "no link of the job is 0 -> 7");
  EXPECT_NE(AnswerLinkRequest({}, {}).refused, "");
}

TEST(LinkControl, AnotherProcessIsAnsweredOverTheSocket) {
  const auto links = SomeLinks();
  ASSERT_TRUE(ServeLinks(links).has_value());
  const std::vector<pid_t> processes = ProcessesWithLinks();
  EXPECT_NE(std::find(processes.begin(), processes.end(), ::getpid()), processes.end());
  const auto answer = AskForLinks(::getpid(), SetLatency({.from = 0}, 450));
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->changed, 2u);
  EXPECT_EQ(LatencyOf(*links, 1, 3, 0), 450'000);
  const auto refused = AskForLinks(::getpid(), SetLatency({.from = 9}, 450));
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("9 -> any"), std::string::npos) << refused.error().message;
}

TEST(LinkControl, TheServerOutlivesStrangersAndFinishedJobs) {
  ASSERT_TRUE(ServeLinks(SomeLinks()).has_value()) << "gone at once";
  const auto links = SomeLinks();
  ASSERT_TRUE(ServeLinks(links).has_value());
  const Deadline deadline = Deadline::After(5000);
  for (const uint32_t magic : {0u, 0x4b4c4344u}) {
    const auto socket = ConnectAbstract(LinkSocketPrefix() + std::to_string(::getpid()));
    ASSERT_TRUE(socket.has_value());
    const std::array<uint32_t, 3> header{magic, 99, 4};
    EXPECT_TRUE(SendAll(socket->get(), std::as_bytes(std::span(header)), deadline).has_value());
    std::array<std::byte, 1> answer{};
    EXPECT_FALSE(ReceiveAll(socket->get(), answer, deadline).has_value()) << "closed without an answer";
  }
  const auto answer = AskForLinks(::getpid(), {});
  ASSERT_TRUE(answer.has_value());
  EXPECT_FALSE(answer->jobs.empty());
}

TEST(LinkControl, SaysSoWhenAProcessHasNoLinks) {
  const auto answer = AskForLinks(1, {});
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(answer.error().hint, "");
}

class RandomMessages {
 public:
  explicit RandomMessages(uint64_t seed) : random_(seed) {}
  std::mt19937_64& engine() { return random_; }

  LinkRequest Request() {
    LinkRequest request;
    request.kind = static_cast<LinkRequestKind>(1 + random_() % 3);
    request.target = {Small(), Small(), Small(), random_() % 2 == 0};
    for (size_t i = 0; i < kLinkFields; ++i) {
      const LinkField& field = LinkFieldTable()[i];
      if (random_() % 2 == 0) request.change.Set(i, field.least + (field.most - field.least) * Part());
    }
    request.for_ns = static_cast<int64_t>(random_() >> 1);
    return request;
  }

  LinkAnswer Answer() {
    LinkAnswer answer{.refused = std::string(random_() % 40, 'x'),
                      .changed = static_cast<uint32_t>(random_())};
    answer.jobs.resize(random_() % 3);
    for (LinkJob& job : answer.jobs) {
      job = {Small(), static_cast<int64_t>(random_() >> 1), Small(), std::vector<LinkRow>(random_() % 5)};
      for (LinkRow& row : job.rows) {
        row = {
            Small(), Small(), Small(), random_() % 2 == 0, random_(), random_(), LinkShape{Part(), Part()}};
      }
    }
    return answer;
  }

 private:
  int Small() { return static_cast<int>(random_() % 20) - 1; }
  double Part() { return std::uniform_real_distribution<double>(1e-6, 1)(random_); }

  std::mt19937_64 random_;
};

TEST(LinkMessages, ReadBackWhatIsWritten) {
  RandomMessages messages(21);
  for (int round = 0; round < 500; ++round) {
    const LinkRequest request = messages.Request();
    const auto request_again = DecodeLinkRequest(Encode(request));
    ASSERT_TRUE(request_again.has_value()) << request_again.error().message;
    ASSERT_EQ(*request_again, request) << "round " << round;
    const LinkAnswer answer = messages.Answer();
    const auto answer_again = DecodeLinkAnswer(Encode(answer));
    ASSERT_TRUE(answer_again.has_value()) << answer_again.error().message;
    ASSERT_EQ(*answer_again, answer) << "round " << round;
  }
}

// A request that is cut or has flipped bits must give an error or values within the ranges.
TEST(LinkMessages, SurviveDamage) {
  RandomMessages messages(22);
  std::mt19937_64& random = messages.engine();
  for (int round = 0; round < 3000; ++round) {
    auto bytes = Encode(messages.Request());
    if (round % 3 == 0) bytes.resize(random() % bytes.size());
    for (int i = 0; i < 3 && !bytes.empty(); ++i) {
      bytes[random() % bytes.size()] ^= std::byte{static_cast<uint8_t>(1u << random() % 8)};
    }
    if (const auto request = DecodeLinkRequest(bytes)) {
      ASSERT_TRUE(CheckRanges(request->change).has_value());
      ASSERT_GE(request->for_ns, 0);
    }
    auto answer = Encode(messages.Answer());
    answer[random() % answer.size()] ^= std::byte{0xff};
    if (const auto decoded = DecodeLinkAnswer(answer)) {
      ASSERT_LE(decoded->jobs.size(), 3u);
    }
    answer.pop_back();
    ASSERT_FALSE(DecodeLinkAnswer(std::span(answer).first(answer.size() / 2)).has_value());
  }
}

}  // namespace
}  // namespace dynamiccl
