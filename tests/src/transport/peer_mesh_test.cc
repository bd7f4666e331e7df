// SPDX-License-Identifier: Apache-2.0
// Tests one mesh of ranks that are threads, processes and pretended "hosts" (HOSTCCL_HOSTID).
#include "src/transport/peer_mesh.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>

#include "src/transport/peer_handshake.h"
#include "tests/support/spawn_threads.h"
#include "tests/support/told_event.h"

namespace dynamiccl {
namespace {

using testing::SpawnThreads;

constexpr int64_t kTimeoutMs = 20'000;

std::vector<std::byte> Bytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Opens every rank's listener as if on the given hosts. It sets an environment variable, so only one thread
// may call it at a time.
std::vector<MeshListener> OpenOnHosts(const std::vector<const char*>& hosts) {
  std::vector<MeshListener> listeners;
  for (const char* host : hosts) {
    ::setenv("HOSTCCL_HOSTID", host, 1);
    auto listener = MeshListener::Open();
    EXPECT_TRUE(listener.has_value()) << listener.error().message;
    if (listener) listeners.push_back(std::move(*listener));
  }
  ::unsetenv("HOSTCCL_HOSTID");
  return listeners;
}

std::vector<std::string> NamesOf(const std::vector<MeshListener>& listeners) {
  std::vector<std::string> names;
  for (const MeshListener& listener : listeners) names.push_back(listener.name);
  return names;
}

void WithMeshes(const std::vector<const char*>& hosts, const std::function<void(PeerMesh&)>& body) {
  auto listeners = OpenOnHosts(hosts);
  const auto names = NamesOf(listeners);
  SpawnThreads(static_cast<int>(hosts.size()), [&](int rank) {
    auto mesh = PeerMesh::Connect(std::move(listeners[static_cast<size_t>(rank)]), names, rank,
                                  Deadline::After(kTimeoutMs));
    ASSERT_TRUE(mesh.has_value()) << mesh.error().message;
    // No rank may leave before all ranks have found each other.
    const auto all = (*mesh)->AllGather({}, Deadline::After(kTimeoutMs));
    ASSERT_TRUE(all.has_value()) << all.error().message;
    body(**mesh);
  });
}

TEST(PeerMesh, ExchangesOverThreadsAndHosts) {
  WithMeshes({"a", "a", "b", "c", "b"}, [](PeerMesh& mesh) {
    EXPECT_EQ(mesh.hosts(), (std::vector<int>{0, 0, 1, 2, 1}));
    for (int round = 0; round < 3; ++round) {
      const std::string mine = "rank " + std::to_string(mesh.rank()) + " round " + std::to_string(round);
      const auto all = mesh.AllGather(Bytes(mine), Deadline::After(kTimeoutMs));
      ASSERT_TRUE(all.has_value()) << all.error().message;
      for (int rank = 0; rank < mesh.n_ranks(); ++rank) {
        EXPECT_EQ((*all)[static_cast<size_t>(rank)],
                  Bytes("rank " + std::to_string(rank) + " round " + std::to_string(round)));
      }
    }
  });
}

TEST(PeerMesh, KnowsHowPeersAreReached) {
  WithMeshes({"a", "a", "b"}, [](PeerMesh& mesh) {
    if (mesh.rank() != 0) return;
    EXPECT_EQ(mesh.reach(0), Reach::kSelf);
    EXPECT_EQ(mesh.reach(1), Reach::kSameProcess);
    EXPECT_EQ(mesh.reach(2), Reach::kRemote);
    EXPECT_FALSE(mesh.same_host(2));
    EXPECT_TRUE(mesh.TakeRelaySocket(2).valid());
    EXPECT_FALSE(mesh.TakeRelaySocket(1).valid());
  });
}

TEST(PeerMesh, AThreadThatLeavesEndsWhatWaitsForIt) {
  WithMeshes({"a", "a", "b"}, [](PeerMesh& mesh) {
    if (mesh.rank() == 1) return;
    const auto all = mesh.AllGather({}, Deadline::After(kTimeoutMs));
    ASSERT_FALSE(all.has_value());
    EXPECT_EQ(all.error().kind, ErrorKind::kPeerFailed) << all.error().message;
    mesh.LookForDeparted();
    EXPECT_EQ(mesh.departed(1), mesh.rank() == 0) << "of a remote peer only the relay knows";
  });
}

// Another thread shuts the mesh down, as ncclCommAbort does, while rank 0 waits for a peer that never comes.
TEST(PeerMesh, AShutdownEndsAnExchangeOfThisRank) {
  for (const char* other : {"a", "b"}) {
    std::atomic<bool> ended{false};
    WithMeshes({"a", other}, [&](PeerMesh& mesh) {
      if (mesh.rank() == 1) return ended.wait(false);
      std::thread aborts([&] { mesh.Shutdown(); });
      const auto all = mesh.AllGather({}, Deadline::After(kTimeoutMs));
      aborts.join();
      ended = true;
      ended.notify_all();
      ASSERT_FALSE(all.has_value());
      EXPECT_EQ(all.error().kind, ErrorKind::kPeerFailed) << all.error().message;
    });
  }
}

// Rank 0 gives up before rank 1 comes. Rank 1's late message must not count as part of the next exchange.
TEST(PeerMesh, MessagesOfAnExchangeThatFailedAreNotTakenForLaterOnes) {
  for (const char* other : {"a", "b"}) {
    test::ToldEvent given_up;
    test::ToldEvent came;
    WithMeshes({"a", other}, [&](PeerMesh& mesh) {
      if (mesh.rank() == 0) {
        const test::ToldAtEnd at_end(given_up);
        const auto first = mesh.AllGather(Bytes("first"), Deadline::After(1));
        ASSERT_FALSE(first.has_value());
        EXPECT_EQ(first.error().kind, ErrorKind::kTimeout) << first.error().message;
        given_up.Tell();
        came.Await();
        const auto second = mesh.AllGather(Bytes("second"), Deadline::After(kTimeoutMs));
        ASSERT_FALSE(second.has_value()) << "got the first message of rank 1";
        EXPECT_EQ(second.error().kind, ErrorKind::kPeerFailed) << second.error().message;
        return;
      }
      given_up.Await();
      EXPECT_TRUE(mesh.AllGather(Bytes("first"), Deadline::After(kTimeoutMs)).has_value());
      came.Tell();
    });
  }
}

TEST(PeerHandshake, AStrangerIsDroppedAndDoesNotHoldUpMembers) {
  auto listeners = OpenOnHosts({"a", "b"});
  std::vector<Endpoint> endpoints;
  for (const auto& name : NamesOf(listeners)) endpoints.push_back(*Endpoint::Decode(name));
  const Deadline deadline = Deadline::After(kTimeoutMs);
  // The stranger knows everything except rank 1's secret.
  std::vector<Endpoint> guessed = endpoints;
  guessed[1].secret[0] ^= 1;
  SpawnThreads(3, [&](int who) {
    if (who == 0) {
      const auto member = AcceptMember(listeners[0].tcp.get(), endpoints, 0, deadline);
      ASSERT_TRUE(member.has_value()) << member.error().message;
      EXPECT_EQ(member->peer, 1);
      EXPECT_EQ(member->purpose, ConnectionPurpose::kRelay);
    } else if (who == 1) {
      const auto stranger = ConnectToMember(guessed, 1, 0, ConnectionPurpose::kRelay, deadline);
      EXPECT_FALSE(stranger.has_value());
      // The real member connects only now, so that rank 0 meets the stranger first.
      EXPECT_TRUE(ConnectToMember(endpoints, 1, 0, ConnectionPurpose::kRelay, deadline).has_value());
    }
  });
}

TEST(PeerHandshake, AConnectorNoticesAFalseListener) {
  auto listeners = OpenOnHosts({"a", "b"});
  std::vector<Endpoint> endpoints;
  for (const auto& name : NamesOf(listeners)) endpoints.push_back(*Endpoint::Decode(name));
  const Deadline deadline = Deadline::After(kTimeoutMs);
  SpawnThreads(2, [&](int who) {
    if (who == 1) {
      const auto connected = ConnectToMember(endpoints, 1, 0, ConnectionPurpose::kExchange, deadline);
      ASSERT_FALSE(connected.has_value());
      EXPECT_EQ(connected.error().kind, ErrorKind::kPeerFailed);
      return;
    }
    // The false listener answers with a random proof, because it cannot know the right one.
    const auto socket = Accept(listeners[0].tcp.get(), deadline);
    ASSERT_TRUE(socket.has_value());
    std::vector<std::byte> anything(32);
    ASSERT_TRUE(SendAll(socket->get(), anything, deadline).has_value());
    ASSERT_TRUE(ReceiveAll(socket->get(), std::span(anything).first(32), deadline).has_value());
    ASSERT_TRUE(SendAll(socket->get(), anything, deadline).has_value());
    ::shutdown(socket->get(), SHUT_WR);
  });
}

TEST(Endpoint, TextThatIsNotOneIsRefused) {
  auto listeners = OpenOnHosts({"a"});
  const std::string text = listeners[0].name;
  EXPECT_TRUE(Endpoint::Decode(text).has_value());
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(Endpoint::Decode(text.substr(0, length)).has_value()) << length;
  }
  EXPECT_FALSE(Endpoint::Decode(text + "x").has_value());
  std::string newer = text;
  newer[0] = 2;
  EXPECT_FALSE(Endpoint::Decode(newer).has_value());
}

}  // namespace
}  // namespace dynamiccl
