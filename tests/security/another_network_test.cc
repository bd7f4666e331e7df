// SPDX-License-Identifier: Apache-2.0
// Tests what a process of the same user in another network of this machine (a container) can reach of a job's
// sockets.
#include <gtest/gtest.h>

#include "src/transport/descriptor_server.h"
#include "src/transport/peer_mesh.h"
#include "src/transport/process_identity.h"
#include "src/transport/shared_buffer.h"
#include "tests/security/in_a_child.h"

namespace dynamiccl {
namespace {

using testing::InAChild;
using testing::InAnotherNetwork;

constexpr int kNoNetwork = 100;

class AnotherNetwork : public ::testing::Test {
 protected:
  void SetUp() override {
    if (InAnotherNetwork([] { return 0; }) == kNoNetwork) GTEST_SKIP() << "needs root, to make a network";
  }
};

TEST_F(AnotherNetwork, DoesNotReachSocketsOfThisHost) {
  const auto listener = MeshListener::Open();
  ASSERT_TRUE(listener.has_value());
  const auto endpoint = Endpoint::Decode(listener->name);
  const auto buffer = AllocateSharedBuffer(4096);
  ASSERT_TRUE(buffer.has_value());
  const BufferRef ref = DescribeBuffer(*buffer, 4096);
  const auto attempts = [&] {
    if (ConnectAbstract(endpoint->socket_name)) return 1;
    if (RequestDescriptor(ref.process, ref.allocation, Deadline::After(5000))) return 2;
    if (ConnectTcp({0x7f000001, endpoint->address.port}, Deadline::After(200))) return 3;
    return 0;
  };
  EXPECT_EQ(InAnotherNetwork(attempts), 0);
  EXPECT_EQ(InAChild(attempts), 1) << "nor does who is in this network";
  EXPECT_TRUE(FreeSharedBuffer(*buffer).has_value());
}

// Two ranks of one machine may see different sockets with the same name. They must count as different hosts,
// so that they use TCP and authenticate.
TEST_F(AnotherNetwork, IsAnotherHost) {
  const std::string here = HostIdentity();
  EXPECT_EQ(InAnotherNetwork([&] { return HostIdentity() != here ? 0 : 1; }), 0);
  EXPECT_EQ(InAChild([&] { return HostIdentity() == here ? 0 : 1; }), 0);
}

// In another network, a listener may have the name that a rank expects. It must receive no connection of the
// rank.
TEST_F(AnotherNetwork, CannotTakeTheNameOfASocket) {
  const auto listener = MeshListener::Open();
  ASSERT_TRUE(listener.has_value());
  const auto endpoint = Endpoint::Decode(listener->name);
  EXPECT_EQ(InAChild([&] { return ListenAbstract(endpoint->socket_name) ? 1 : 0; }), 0) << "taken";
  EXPECT_EQ(InAnotherNetwork([&] {
              const auto theirs = ListenAbstract(endpoint->socket_name);
              return theirs && !Accept(theirs->get(), Deadline::After(0)) ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace dynamiccl
