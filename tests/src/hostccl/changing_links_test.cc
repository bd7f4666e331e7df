// SPDX-License-Identifier: Apache-2.0
// Links that change while a job runs: by orders over the socket and by events of the topology. The tests
// assert only lower bounds of a call's time.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/src/hostccl/shaped_job.h"
#include "tests/support/spawn_ranks.h"

namespace dynamiccl {
namespace {

using testing::Ask;
using testing::BytesOnLinks;
using testing::FirstStart;
using testing::RankContext;
using testing::SpawnRanks;
using testing::TopologyScope;

constexpr const char* kTwoNodes =
    "version = 1\nnodes = 2\n[link.inter]\nlatency_us = 1\nbandwidth_gbps = 5\n";

// Runs one AllReduce and checks its sum.
void AllReduce(RankContext& context, size_t count = 16) {
  std::vector<float> data(count, static_cast<float>(context.rank + 1));
  EXPECT_EQ(ncclAllReduce(data.data(), data.data(), count, ncclFloat, ncclSum, context.comm, context.stream),
            ncclSuccess);
  EXPECT_EQ(hostcclStreamSynchronize(context.stream), ncclSuccess);
  EXPECT_EQ(data.back(), static_cast<float>(context.n_ranks * (context.n_ranks + 1) / 2));
}

LinkRequest Latency(double us) {
  LinkRequest request{.kind = LinkRequestKind::kSet};
  request.change.Set(0, us);
  return request;
}

TEST(ChangingLinks, AnOrderActsOnTheNextCall) {
  const TopologyScope topology(kTwoNodes);
  FirstStart ordered;
  const ncclResult_t result = SpawnRanks(2, [&](RankContext& context) {
    AllReduce(context);
    if (context.rank == 0) {
      EXPECT_EQ(Ask(Latency(60'000)).changed, 2u);
      ordered.Note();
    }
    AllReduce(context);
    // Rank 1 needs data that rank 0 sends after its order. Rank 0 may have received all data before the
    // order.
    if (context.rank == 1) {
      EXPECT_GE(ordered.MsSince(), 60);
    }
    if (context.rank == 0) {
      EXPECT_EQ(Ask({.kind = LinkRequestKind::kReset}).changed, 2u);
    }
    AllReduce(context);
    if (context.rank != 0) return;
    const LinkAnswer answer = Ask({});
    ASSERT_EQ(answer.jobs.size(), 1u);
    EXPECT_EQ(answer.jobs[0].calls, 3);
    for (const LinkRow& row : answer.jobs[0].rows) {
      EXPECT_EQ(row.shape.latency_us, 1);
      EXPECT_FALSE(row.ordered);
      EXPECT_GT(row.messages, 0u);
    }
  });
  EXPECT_EQ(result, ncclSuccess);
}

TEST(ChangingLinks, AnEventActsOnItsCalls) {
  const TopologyScope topology(std::string(kTwoNodes) +
                               "[[event]]\nat_call = 3\nfor_calls = 1\nlatency_us = 60000\n");
  FirstStart third;
  const ncclResult_t result = SpawnRanks(2, [&](RankContext& context) {
    for (int call = 1; call <= 5; ++call) {
      if (call == 3) third.Note();
      AllReduce(context);
      if (call == 3) {
        EXPECT_GE(third.MsSince(), 60);
      }
    }
    if (context.rank == 0) {
      EXPECT_EQ(Ask({}).jobs.at(0).rows.at(0).shape.latency_us, 1) << "it has ended";
    }
  });
  EXPECT_EQ(result, ncclSuccess);
}

// The bandwidth is 10 MB/s, so 2 MB take at least 200 ms, even if the receiver reads them into memory early.
TEST(ChangingLinks, DataTakenInEarlyIsNotThereEarly) {
  const TopologyScope topology(kTwoNodes);
  FirstStart sent;
  const ncclResult_t result = SpawnRanks(2, [&](RankContext& context) {
    std::vector<char> data(2'000'000, static_cast<char>(context.rank == 0 ? 5 : 0));
    if (context.rank == 0) {
      LinkRequest slow{.kind = LinkRequestKind::kSet};
      slow.change.Set(1, 0.01);
      Ask(slow);
      sent.Note();
    }
    if (context.rank == 0)
      ncclSend(data.data(), data.size(), ncclChar, 1, context.comm, context.stream);
    else
      ncclRecv(data.data(), data.size(), ncclChar, 0, context.comm, context.stream);
    EXPECT_EQ(hostcclStreamSynchronize(context.stream), ncclSuccess);
    EXPECT_EQ(data.back(), 5);
    if (context.rank == 1) {
      EXPECT_GE(sent.MsSince(), 200);
    }
    if (context.rank == 0) {
      EXPECT_GE(BytesOnLinks(), 2'000'000u);
    }
  });
  EXPECT_EQ(result, ncclSuccess);
}

// The nodes have unequal numbers of ranks, one of two rails is slow, and latencies jitter. The results do not
// depend on any of these.
TEST(ChangingLinks, OddFabricsGiveRightResults) {
  const TopologyScope topology(
      "version = 1\nnodes = 2\nranks_per_node = [3, 1]\n[link.inter]\nrails = 2\nlatency_us = 20\n"
      "bandwidth_gbps = 2\njitter_us = 30\nload = 0.8\nburst_on_ms = 1\nburst_off_ms = 2\n"
      "[[link.override]]\nrail = 1\ndegrade = 0.25\n");
  ::setenv("NCCL_MIN_NCHANNELS", "4", 1);
  const ncclResult_t result = SpawnRanks(4, [](RankContext& context) {
    for (const size_t count : {size_t{1}, size_t{1000}, size_t{300'000}}) {
      for (int call = 0; call < 5; ++call) AllReduce(context, count);
    }
    if (context.rank != 0) return;
    const LinkAnswer answer = Ask({});
    for (const LinkRow& row : answer.jobs.at(0).rows) EXPECT_GT(row.bytes, 0u) << "rail " << row.rail;
  });
  ::unsetenv("NCCL_MIN_NCHANNELS");
  EXPECT_EQ(result, ncclSuccess);
}

}  // namespace
}  // namespace dynamiccl
