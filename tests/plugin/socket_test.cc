// SPDX-License-Identifier: Apache-2.0
// Tests the sockets of the control plane.
#include "plugin/runtime/socket.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dynamiccl {
namespace {

// The time within which something must happen, even on a busy machine.
constexpr int kSoonMs = 5000;

// A worker of a data loader may live longer than the process that forked it. Ranks must be freed when that
// process ends, not only when the worker does.
TEST(ControlSockets, AForkedChildHoldsNone) {
  auto listening = Listen("127.0.0.1", 0);
  ASSERT_TRUE(listening) << listening.error().message;
  const auto ranks = Connect(listening->address, listening->port, kSoonMs);
  ASSERT_TRUE(ranks) << ranks.error().message;
  auto leaders = Accept(listening->fd.get());
  ASSERT_TRUE(leaders) << leaders.error().message;
  int lives[2];
  ASSERT_EQ(::pipe(lives), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(lives[1]);
    char end = 0;
    ::_exit(static_cast<int>(::read(lives[0], &end, 1)));
  }
  ::close(lives[0]);
  leaders->Reset();
  listening->fd.Reset();
  pollfd waiting{ranks->get(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, kSoonMs), 1) << "the child keeps the connection open";
  const auto again = Connect(listening->address, listening->port, kSoonMs);
  ASSERT_FALSE(again) << "the child keeps the port open";
  EXPECT_EQ(again.error().kind, ErrorKind::kPeerFailed);
  ::close(lives[1]);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(HostPort, IsReadWithNamesAndAddressesOfBothKinds) {
  EXPECT_EQ(ParseHostPort("node1:29400").value(), std::pair(std::string("node1"), uint16_t{29400}));
  EXPECT_EQ(ParseHostPort("[fe80::1]:80").value(), std::pair(std::string("fe80::1"), uint16_t{80}));
  for (const char* wrong : {"", "node1", "node1:", "node1:0", "node1:x"})
    EXPECT_FALSE(ParseHostPort(wrong)) << wrong;
}

}  // namespace
}  // namespace dynamiccl
