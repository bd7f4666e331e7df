// SPDX-License-Identifier: Apache-2.0
// A trace may have calls that an advised job does not issue. Calls that consist of sends and receives are not
// simulated, and a note or an error always names them. Broadcasts of buffers lower the share of calls that
// agree.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/advise/advice.h"
#include "traces/format/record_views.h"

namespace dynamiccl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kBytes = 1 << 20;
constexpr int kSteps = 8;

// Returns a trace of two ranks. Each step has one call of 1 MiB for each entry of `kinds`.
Trace TraceOf(const std::vector<Collective>& kinds) {
  TraceSection section;
  section.world = 2;
  section.closed = true;
  const auto add = [&](TraceRecord record) {
    Seal(record);
    section.records.push_back(record);
  };
  add(CommunicatorRecord(0, {0xc0, 0, 2, 1}, 0));
  IssuedCall issued;
  issued.call.bytes = kBytes;
  issued.call.data_type = DataType::kFloat32;
  for (int step = 0; step < kSteps; ++step) {
    for (const Collective kind : kinds) {
      issued.call.collective = kind;
      issued.issued_ns += 1'000'000;
      add(CallRecord(0, issued));
      ++issued.call.call_number;
    }
  }
  return {{section}};
}

TEST(CallsBetweenTwo, AreCountedWithTheirShareOfTheBytes) {
  const auto all_to_all = StepOf(TraceOf({Collective::kAllReduce, Collective::kAllToAll}));
  ASSERT_TRUE(all_to_all);
  EXPECT_DOUBLE_EQ(all_to_all->between_two_share, 0.5);
  EXPECT_THAT(CallsNotSimulated(*all_to_all),
              AllOf(HasSubstr(fmt::format("{} AlltoAll (50 % of the bytes)", kSteps)), Not(HasSubstr("Send")),
                    HasSubstr("counts as computing")));
  const auto pipeline =
      StepOf(TraceOf({Collective::kSend, Collective::kAllReduce, Collective::kRecv, Collective::kSend}));
  ASSERT_TRUE(pipeline);
  EXPECT_DOUBLE_EQ(pipeline->between_two_share, 0.75);
  EXPECT_THAT(CallsNotSimulated(*pipeline), HasSubstr(fmt::format("{} Send, {} Recv (", 2 * kSteps, kSteps)));
}

TEST(CallsBetweenTwo, AloneAreAnErrorThatSaysSo) {
  const auto step = StepOf(TraceOf({Collective::kAllToAll, Collective::kSendRecv}));
  ASSERT_FALSE(step);
  EXPECT_THAT(step.error().message, HasSubstr(fmt::format("only calls that consist of sends and receives: {} "
                                                          "SendRecv, {} AlltoAll",
                                                          kSteps, kSteps)));
  EXPECT_THAT(step.error().hint, HasSubstr("dynamiccl why"));
  EXPECT_THAT(StepOf(TraceOf({})).error().message, ::testing::StrEq("the trace has no collectives"));
}

// DDP broadcasts the buffers of BatchNorms before each forward pass.
TEST(CallsOfOthers, BroadcastsDoNotHideThatTheBucketsAgree) {
  const auto step = StepOf(TraceOf({Collective::kBroadcast, Collective::kAllReduce}));
  ASSERT_TRUE(step);
  const auto recognised = RecogniseJob(*step);
  ASSERT_TRUE(recognised) << recognised.error().message;
  EXPECT_DOUBLE_EQ(*ShareOfCalls(recognised->job, *step), 0.5);
}

}  // namespace
}  // namespace dynamiccl
