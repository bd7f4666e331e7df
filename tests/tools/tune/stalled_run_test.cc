// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/stalled_run.h"

#include <gtest/gtest.h>

#include "traces/format/record_views.h"

namespace dynamiccl {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(StoodStill, AfterTwoSecondsOfSilenceUnlessTheUnchangedJobIsAsSilent) {
  const RunCalls ended{.last_ns = 9 * kSecond, .longest_pause_ns = kSecond / 10, .ended_ns = 10 * kSecond};
  const RunCalls at_work{.last_ns = 59 * kSecond, .ended_ns = 60 * kSecond};
  const RunCalls hung{.last_ns = 9 * kSecond, .ended_ns = 60 * kSecond};
  EXPECT_EQ(WhyStalled(at_work, ended, kSecond / 20), "");
  EXPECT_EQ(WhyStalled(hung, ended, kSecond / 20),
            "the job stood still: it made no call in its last 51 s, and did not end");
  EXPECT_EQ(WhyStalled({}, ended, kSecond), "");
  // A stall must exceed ten steps of the job and its pauses, such as evaluations.
  EXPECT_EQ(WhyStalled(hung, ended, 6 * kSecond), "");
  RunCalls pausing = ended;
  pausing.longest_pause_ns = 26 * kSecond;
  EXPECT_EQ(WhyStalled(hung, pausing, kSecond / 20), "");
  // The unchanged job also sleeps after its steps.
  EXPECT_EQ(WhyStalled(hung, hung, kSecond / 20), "");
}

TEST(StoodStill, CallsAreThoseOfAllRanksInCalendarTime) {
  TraceSection section;
  section.opened = {.monotonic_ns = 100 * kSecond, .realtime_ns = 1000 * kSecond};
  section.records.push_back(CommunicatorRecord(0, {.n_ranks = 2, .n_nodes = 1}, 0));
  for (const int64_t second : {101, 131, 132, 134, 135}) {
    IssuedCall issued{.call = {}, .issued_ns = second * kSecond};
    section.records.push_back(CallRecord(0, issued));
  }
  for (TraceRecord& record : section.records) Seal(record);
  TraceSection later = section;
  later.opened.realtime_ns += 3 * kSecond;
  const RunCalls run = CallsOfRun({{{section}}, {{later}}}, 1050 * kSecond);
  EXPECT_EQ(run.last_ns, 1038 * kSecond);
  EXPECT_EQ(run.longest_pause_ns, 2 * kSecond);
  EXPECT_EQ(run.ended_ns, 1050 * kSecond);
}

}  // namespace
}  // namespace dynamiccl
