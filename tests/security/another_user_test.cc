// SPDX-License-Identifier: Apache-2.0
// Tests what another user of the machine can reach of a job's sockets and memory, and what this user can
// disturb.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include "src/base/shared_memory.h"
#include "src/transport/descriptor_server.h"
#include "src/transport/emulated_links.h"
#include "src/transport/link_client.h"
#include "src/transport/link_server.h"
#include "src/transport/peer_buffers.h"
#include "src/transport/peer_mesh.h"
#include "src/transport/process_identity.h"
#include "src/transport/shared_buffer.h"
#include "tests/security/in_a_child.h"

namespace dynamiccl {
namespace {

using testing::AsAnotherUser;
using testing::InAChild;

Deadline InTime() {
  return Deadline::After(20'000);
}

class AnotherUser : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::IsRoot()) GTEST_SKIP() << "needs root, to become another user";
  }
};

// Connects to `name`, sends `said` and waits until the other side closes. Returns how many bytes the other
// side sent, at most 99.
int SayTo(const std::string& name, std::span<const std::byte> said) {
  const auto socket = ConnectAbstract(name);
  if (!socket) return 101;
  (void)SendAll(socket->get(), said, InTime());
  int heard = 0;
  std::byte byte[1];
  while (heard < 99 && ReceiveAll(socket->get(), byte, InTime())) ++heard;
  return heard;
}

// Two ranks are processes. Another user connects to the first rank before the second rank does.
TEST_F(AnotherUser, WhoConnectsToARankIsDroppedAndHoldsUpNobody) {
  auto listener = MeshListener::Open();
  ASSERT_TRUE(listener.has_value());
  const auto endpoint = Endpoint::Decode(listener->name);
  ASSERT_TRUE(endpoint.has_value());
  int names[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, names), 0);
  int stranger = -1;
  std::thread attack([&] {
    stranger = AsAnotherUser([&] {
      const auto socket = ConnectAbstract(endpoint->socket_name);
      if (!socket) return 101;
      const uint32_t rank = 1;
      (void)SendAll(socket->get(), std::as_bytes(std::span(&rank, 1)), InTime());
      (void)::send(names[1], "q", 1, 0);  // it has connected: the second rank may come
      std::byte byte[1];
      return ReceiveAll(socket->get(), byte, InTime()) ? 1 : 0;
    });
  });
  char queued = 0;
  EXPECT_EQ(::recv(names[0], &queued, 1, 0), 1);
  int second = -1;
  std::thread other([&] {
    second = InAChild([&] {
      auto mine = MeshListener::Open();
      if (!mine) return 2;
      (void)::send(names[1], mine->name.data(), mine->name.size(), 0);
      const std::vector<std::string> all{listener->name, mine->name};
      const auto mesh = PeerMesh::Connect(std::move(*mine), all, 1, InTime());
      return mesh && (*mesh)->AllGather({}, InTime()) ? 0 : 3;
    });
  });
  std::array<char, 512> name{};
  const ssize_t length = ::recv(names[0], name.data(), name.size(), 0);
  ASSERT_GT(length, 0);
  const std::vector<std::string> all{listener->name, std::string(name.data(), static_cast<size_t>(length))};
  {
    const auto mesh = PeerMesh::Connect(std::move(*listener), all, 0, InTime());
    EXPECT_TRUE(mesh.has_value()) << mesh.error().message;
    EXPECT_TRUE(mesh && (*mesh)->AllGather({}, InTime()));
  }
  attack.join();
  other.join();
  EXPECT_EQ(second, 0);
  EXPECT_EQ(stranger, 0) << "the stranger heard something, or did not connect";
  for (const int end : names) ::close(end);
}

TEST_F(AnotherUser, GetsNoSharedBuffer) {
  const auto buffer = AllocateSharedBuffer(4096);
  ASSERT_TRUE(buffer.has_value());
  const BufferRef ref = DescribeBuffer(*buffer, 4096);
  const std::string name = fmt::format("hostccl-memory-{:016x}", ref.process);
  const auto ask = [&] { return SayTo(name, std::as_bytes(std::span(&ref.allocation, 1))); };
  EXPECT_EQ(AsAnotherUser(ask), 0);
  EXPECT_EQ(AsAnotherUser([&] { return RequestDescriptor(ref.process, ref.allocation, InTime()) ? 1 : 0; }),
            0);
  EXPECT_EQ(InAChild([&] { return RequestDescriptor(ref.process, ref.allocation, InTime()) ? 0 : 1; }), 0)
      << "nor does one of the same user";
  EXPECT_TRUE(FreeSharedBuffer(*buffer).has_value());
}

TEST_F(AnotherUser, IsNotBelievedToBeTheOwnerOfABuffer) {
  constexpr uint64_t kProcess = 0xa77ac4e4;
  int ready[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  std::thread other([&] {
    AsAnotherUser([&] {
      const auto listener = ListenAbstract(fmt::format("hostccl-memory-{:016x}", kProcess));
      (void)!::write(ready[1], "r", 1);
      if (const auto socket = Accept(listener->get(), InTime())) {
        const auto memory = SharedMemory::Create("theirs", 8192);
        (void)SendDescriptor(socket->get(), memory->fd());
        const uint64_t bytes = 4096;
        (void)SendAll(socket->get(), std::as_bytes(std::span(&bytes, 1)), InTime());
      }
      return 0;
    });
  });
  char mark = 0;
  EXPECT_EQ(::read(ready[0], &mark, 1), 1);
  PeerBuffers buffers;
  const auto mapped = buffers.Map({.process = kProcess, .allocation = 1, .bytes = 4096}, InTime());
  ASSERT_FALSE(mapped.has_value());
  EXPECT_NE(mapped.error().message.find("of user 65534 is not one of our ranks"), std::string::npos)
      << mapped.error().message;
  other.join();
  for (const int end : ready) ::close(end);
}

std::set<std::string> NamesInSharedMemory() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) names.insert(entry.path());
  return names;
}

TEST_F(AnotherUser, FindsSharedMemoryUnderNoNameAndCannotOpenIt) {
  const auto before = NamesInSharedMemory();
  const auto memory = SharedMemory::Create("hostccl", 4096);
  const auto buffer = AllocateSharedBuffer(4096);
  ASSERT_TRUE(memory.has_value() && buffer.has_value());
  uint64_t secret = 0x5ec2e7;
  const pid_t owner = ::getpid();
  for (const std::string& name : NamesInSharedMemory()) {
    EXPECT_TRUE(before.contains(name) || name.find("hostccl") == std::string::npos) << name;
  }
  EXPECT_EQ(AsAnotherUser([&] {
              const std::string path = fmt::format("/proc/{}/fd/{}", owner, memory->fd());
              if (::open(path.c_str(), O_RDONLY) >= 0) return 1;
              if (::open(fmt::format("/proc/{}/mem", owner).c_str(), O_RDONLY) >= 0) return 2;
              return CanReadProcess(owner, reinterpret_cast<uint64_t>(&secret), secret) ? 3 : 0;
            }),
            0);
  EXPECT_TRUE(FreeSharedBuffer(*buffer).has_value());
}

TEST_F(AnotherUser, CannotOrderLinks) {
  Topology topology;
  topology.nodes = 2;
  topology.inter = LinkShape{.latency_us = 30, .bandwidth_gbps = 1};
  auto states = Segment::Create(2);
  ASSERT_TRUE(states.has_value());
  const auto links = std::make_shared<EmulatedLinks>(topology, std::vector<int>{0, 1}, *states);
  ASSERT_TRUE(ServeLinks(links).has_value());
  const pid_t job = ::getpid();
  const std::string name = LinkSocketPrefix() + std::to_string(job);
  EXPECT_EQ(AsAnotherUser([&] {
              const auto socket = ConnectAbstract(name);
              if (!socket) return 101;
              (void)SendLinkMessage(socket->get(), Encode(LinkRequest{}), InTime());
              return ReceiveLinkMessage(socket->get(), InTime()) ? 1 : 0;
            }),
            0);
  EXPECT_TRUE(AskForLinks(job, LinkRequest{}).has_value()) << "nor is its own user answered";
}

}  // namespace
}  // namespace dynamiccl
