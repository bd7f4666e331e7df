// SPDX-License-Identifier: Apache-2.0
// No ring may be lost. A poster publishes and rings at any moment while the other side goes to sleep. It must
// wake the sleeper, or the sleeper must see the post.
#include "src/transport/doorbell.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "src/base/clock.h"
#include "src/base/shared_memory.h"
#include "tests/support/rounds.h"

namespace dynamiccl {
namespace {

using dynamiccl::testing::Rounds;

struct Exchange {
  Doorbell bell[2];
  std::atomic<uint64_t> posted[2];
};

// In ns. A sleep this long was not woken, because every sleep here is much shorter.
constexpr int64_t kLostNs = 20'000'000'000;

// Posts and waits for the other side's post, always by a sleep. Returns the number of sleeps that nobody
// ended.
int PingPong(Exchange& exchange, size_t self, uint64_t rounds) {
  int lost = 0;
  for (uint64_t round = 1; round <= rounds; ++round) {
    exchange.posted[1 - self].store(round, std::memory_order_release);
    exchange.bell[1 - self].Ring();
    while (exchange.posted[self].load(std::memory_order_acquire) < round) {
      const uint32_t armed = exchange.bell[self].Arm();
      if (exchange.posted[self].load(std::memory_order_acquire) >= round) {
        exchange.bell[self].Disarm();
        break;
      }
      const int64_t start = MonotonicNanoseconds();
      exchange.bell[self].Sleep(armed, kLostNs);
      lost += MonotonicNanoseconds() - start >= kLostNs ? 1 : 0;
    }
  }
  return lost;
}

TEST(Doorbells, NoRingIsLostBetweenThreads) {
  Exchange exchange{};
  int lost[2] = {};
  const auto rounds = static_cast<uint64_t>(Rounds(4000));
  std::thread other([&] { lost[1] = PingPong(exchange, 1, rounds); });
  lost[0] = PingPong(exchange, 0, rounds);
  other.join();
  EXPECT_EQ(lost[0] + lost[1], 0);
}

TEST(Doorbells, NoRingIsLostBetweenProcesses) {
  auto memory = SharedMemory::Create("doorbells", sizeof(Exchange));
  ASSERT_TRUE(memory.has_value());
  auto& exchange = *new (memory->data()) Exchange{};
  const auto run = [&exchange](size_t self) {
    return PingPong(exchange, self, static_cast<uint64_t>(Rounds(4000)));
  };
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run(1) == 0 ? 0 : 1);
  EXPECT_EQ(run(0), 0);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace dynamiccl
