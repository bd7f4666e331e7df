// SPDX-License-Identifier: Apache-2.0
// Tests a rank's side of switching with a leader that does not accept the rank.
#include "plugin/runtime/switch_thread.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include <atomic>
#include <thread>

#include "plugin/runtime/control_server.h"
#include "plugin/runtime/socket.h"
#include "src/base/clock.h"

namespace dynamiccl {
namespace {

constexpr ControlSecret kSecret{7, 7};
constexpr ControlToken kRoot{3};
constexpr ControlToken kChild{4};

// This happens if a split makes a communicator without the leader's process. There may be a thousand such
// ranks.
TEST(SwitchThread, LeaderWithoutARankIsAskedLessAndLessAndThenGivenUp) {
  std::atomic<int> joins{0};
  auto leadership =
      std::make_unique<SwitchLeadership>(std::make_unique<PolicyWatch>("/no/such/policy", Sha256Digest{1}),
                                         [&](const ControlToken&) -> std::optional<uint64_t> {
                                           ++joins;
                                           return std::nullopt;
                                         });
  auto server = ControlServer::Start({"127.0.0.1"}, 0, 1000, std::move(leadership));
  ASSERT_TRUE(server) << server.error().message;
  (*server)->RegisterRoot(kRoot, kSecret);
  const auto engine = std::make_shared<DecisionEngine>(EngineOptions{});
  const auto tables = std::make_shared<SwitchableTables>(
      engine, [&](const std::shared_ptr<const Policy>&, std::span<const std::byte>) { return engine; });
  const auto times = std::make_shared<TimesReport>([] {});
  times->SetOrders(true, 7);
  constexpr int kReachMs = 500;
  SwitchThread thread("", nullptr, kReachMs);
  thread.Join({(*server)->address(), (*server)->port(), kRoot, kSecret}, {kRoot, kChild, 0, 2}, tables,
              times);
  const int64_t deadline = MonotonicNanoseconds() + 20'000'000'000;
  while (times->enabled() && MonotonicNanoseconds() < deadline) std::this_thread::yield();
  EXPECT_FALSE(times->enabled()) << "the rank did not give up, and goes on taking times for nobody";
  EXPECT_GE(joins, 2);
  // The rank joins at once, then after pauses of 1 ms, 2 ms, 4 ms, ..., 256 ms.
  EXPECT_LE(joins, 11);
  thread.Leave(tables);
}

int64_t ProcessorNanoseconds() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return used.tv_sec * 1'000'000'000LL + used.tv_nsec;
}

// A program may run out of descriptors. The connection that waits to be accepted must not keep a core of the
// leader busy.
TEST(ControlServer, WithoutDescriptorsRestsUntilThereAreSome) {
  constexpr int kLongMs = 30'000;
  auto server = ControlServer::Start({"127.0.0.1"}, 0, kLongMs);
  ASSERT_TRUE(server) << server.error().message;
  // When UBSan first sees a type, it examines objects of this type through a pipe, which takes descriptors.
  // So this call shows it the types of an error's text while there are descriptors.
  EXPECT_FALSE(Accept(-1));
  (*server)->RegisterRoot(kRoot, kSecret);
  PledgeMessage pledge{kRoot, kChild, 0, 1, {}, {}};
  pledge.of_leader = true;
  const auto message = EncodePledge(pledge, kSecret);
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit none{static_cast<rlim_t>(UniqueFd(::dup(fd.get())).get()), usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_in leader{};
  leader.sin_family = AF_INET;
  leader.sin_port = htons((*server)->port());
  leader.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&leader), sizeof(leader)), 0);
  EXPECT_TRUE(SendAll(fd.get(), message));
  pollfd waiting{fd.get(), POLLIN, 0};
  const int64_t before = ProcessorNanoseconds();
  EXPECT_EQ(::poll(&waiting, 1, 400), 0) << "the leader had a descriptor left";
  EXPECT_LT(ProcessorNanoseconds() - before, 200'000'000);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_EQ(::poll(&waiting, 1, kLongMs), 1) << "the leader has forgotten who waits";
}

// A rank that connects again sends its join and all its proposals at once.
TEST(ControlServer, TakesWhatComesTogetherWithAJoin) {
  auto leadership =
      std::make_unique<SwitchLeadership>(std::make_unique<PolicyWatch>("/no/such/policy", Sha256Digest{1}),
                                         [](const ControlToken&) { return std::optional<uint64_t>(1); });
  auto server = ControlServer::Start({"127.0.0.1"}, 0, 1000, std::move(leadership));
  ASSERT_TRUE(server) << server.error().message;
  (*server)->RegisterRoot(kRoot, kSecret);
  const auto fd = Connect((*server)->address(), (*server)->port(), 10'000);
  ASSERT_TRUE(fd) << fd.error().message;
  auto both = EncodeJoin({kRoot, kChild, 0, 1}, kSecret);
  const auto proposal = EncodeProposal({kChild, {"bucket", 5}}, kSecret);
  both.insert(both.end(), proposal.begin(), proposal.end());
  ASSERT_TRUE(SendAll(fd->get(), both));
  pollfd waiting{fd->get(), POLLIN, 0};
  ASSERT_EQ(::poll(&waiting, 1, 20'000), 1);
  std::byte answer[kMaxMessageBytes];
  EXPECT_GT(::recv(fd->get(), answer, sizeof(answer), 0), 0) << "no version with the value, but an end";
}

}  // namespace
}  // namespace dynamiccl
