// SPDX-License-Identifier: Apache-2.0
// Calls between two ranks are not simulated, and a note or an error always says so. An all-to-all is SendRecv
// or consists of Sends and Recvs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/advise/advice.h"
#include "traces/format/record_views.h"

namespace dynamiccl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kBytes = 1 << 20;
constexpr int kSteps = 8;

// Returns a trace of two ranks. Each step has one call of 1 MiB of each of `kinds`.
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
  const auto all_to_all = StepOf(TraceOf({Collective::kAllReduce, Collective::kSendRecv}));
  ASSERT_TRUE(all_to_all);
  EXPECT_DOUBLE_EQ(all_to_all->between_two_share, 0.5);
  EXPECT_THAT(CallsNotSimulated(*all_to_all),
              AllOf(HasSubstr(fmt::format("{} calls of SendRecv, Send and Recv", kSteps)),
                    HasSubstr("50 % of the bytes"), HasSubstr("counts as computing")));
  const auto pipeline =
      StepOf(TraceOf({Collective::kSend, Collective::kAllReduce, Collective::kRecv, Collective::kSend}));
  ASSERT_TRUE(pipeline);
  EXPECT_DOUBLE_EQ(pipeline->between_two_share, 0.75);
  EXPECT_THAT(CallsNotSimulated(*pipeline), HasSubstr(fmt::format("{} calls", 3 * kSteps)));
}

TEST(CallsBetweenTwo, AloneAreAnErrorThatSaysSo) {
  const auto step = StepOf(TraceOf({Collective::kSendRecv}));
  ASSERT_FALSE(step);
  EXPECT_THAT(step.error().message, AllOf(HasSubstr(fmt::format("no collectives, only {} calls", kSteps)),
                                          HasSubstr("all-to-all")));
  EXPECT_THAT(step.error().hint, HasSubstr("dynamiccl why"));
  EXPECT_THAT(StepOf(TraceOf({})).error().message, ::testing::StrEq("the trace has no collectives"));
}

}  // namespace
}  // namespace dynamiccl
