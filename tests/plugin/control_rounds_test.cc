// SPDX-License-Identifier: Apache-2.0
// Counts the rounds in which a leader serves many ranks that connect at once. The leader's thread calls poll
// once per round. This program replaces poll to count the calls.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <future>

#include "plugin/runtime/control_server.h"
#include "src/base/job_fail_point.h"

namespace {

thread_local bool t_is_leader = false;
std::atomic<int> g_leader_waits{0};

}  // namespace

extern "C" int poll(pollfd* descriptors, nfds_t count, int timeout_ms) {
  if (t_is_leader) ++g_leader_waits;
  timespec limit{.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1'000'000L};
  return static_cast<int>(
      ::syscall(SYS_ppoll, descriptors, count, timeout_ms < 0 ? nullptr : &limit, nullptr, 0));
}

namespace dynamiccl {
namespace {

constexpr int kLongMs = 30'000;
constexpr int kRanks = 300;
constexpr ControlSecret kSecret{42, 1, 2, 3};
constexpr ControlToken kRoot{7};

std::promise<void> g_first_pledge, g_all_connected;

// Holds the leader at its first pledge until all other ranks wait to be accepted.
void HoldTheLeader(JobFailPoint point) {
  if (point != JobFailPoint::kServerPledge || t_is_leader) return;
  t_is_leader = true;
  g_first_pledge.set_value();
  g_all_connected.get_future().wait();
}

ControlSocket Pledged(const ControlServer& server, int rank) {
  PledgeMessage pledge{kRoot, ControlToken{1}, rank, kRanks, {}, {}};
  pledge.of_leader = rank == 0;
  auto fd = Connect(server.address(), server.port(), kLongMs);
  EXPECT_TRUE(fd && SendAll(fd->get(), EncodePledge(pledge, kSecret))) << rank;
  return std::move(*fd);
}

TEST(ControlRounds, AFewServeAllRanksThatWait) {
  g_act_at_fail_point = HoldTheLeader;
  auto server = ControlServer::Start({"127.0.0.1"}, 0, kLongMs);
  ASSERT_TRUE(server) << server.error().message;
  (*server)->RegisterRoot(kRoot, kSecret);
  std::vector<ControlSocket> ranks;
  ranks.push_back(Pledged(**server, 0));
  g_first_pledge.get_future().wait();
  while (ranks.size() < kRanks) ranks.push_back(Pledged(**server, static_cast<int>(ranks.size())));
  g_all_connected.set_value();
  for (const ControlSocket& rank : ranks) {
    pollfd verdict{rank.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&verdict, 1, kLongMs), 1);
  }
  EXPECT_LE(g_leader_waits, 10);
}

}  // namespace
}  // namespace dynamiccl
