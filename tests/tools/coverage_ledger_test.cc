// SPDX-License-Identifier: Apache-2.0
#include "tools/report/coverage_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dynamiccl {
namespace {

TraceCall CallOf(Coverage coverage, uint64_t bytes, int64_t ns,
                 Collective collective = Collective::kAllReduce) {
  TraceCall call;
  call.issued.call.bytes = bytes;
  call.issued.call.collective = collective;
  call.issued.duration_ns = ns;
  call.issued.coverage = coverage;
  return call;
}

TEST(CoverageLedger, ATimedCallSpeaksForTheCallsLikeIt) {
  // 4 x 30 us tunable, of which one was timed; 2 x 40 us pinned, both timed.
  const CoverageLedger ledger =
      LedgerOf({CallOf(Coverage::kTunable, 1024, -1), CallOf(Coverage::kTunable, 1024, 30000),
                CallOf(Coverage::kTunable, 1024, -1), CallOf(Coverage::kTunable, 1024, -1),
                CallOf(Coverage::kPinned, 2048, 50000), CallOf(Coverage::kPinned, 2048, 30000)});
  EXPECT_EQ(ledger.estimated_calls, 6);
  EXPECT_DOUBLE_EQ(ledger.of[static_cast<size_t>(Coverage::kTunable)].ns, 120000);
  EXPECT_DOUBLE_EQ(ledger.of[static_cast<size_t>(Coverage::kPinned)].ns, 80000);
  EXPECT_EQ(Describe(ledger), "tunable 60.0 % of the communication time; pinned 40.0 %");
}

TEST(CoverageLedger, AKindWithoutATimeMakesItCountBytes) {
  const CoverageLedger ledger =
      LedgerOf({CallOf(Coverage::kTunable, 1000, 30000), CallOf(Coverage::kNotAsked, 8000, -1),
                CallOf(Coverage::kPointToPoint, 1000, -1, Collective::kSend)});
  EXPECT_EQ(ledger.estimated_calls, 1);
  EXPECT_EQ(Describe(ledger),
            "tunable 10.0 % of the bytes (no times for all calls); not_asked 80.0 %, point_to_point 10.0 %");
}

TEST(CoverageLedger, SaysNothingOfNothing) {
  EXPECT_EQ(Describe(LedgerOf({})), "");
  EXPECT_EQ(Describe(LedgerOf({CallOf(Coverage::kUnknown, 0, -1)})),
            "tunable 0.0 % of the calls; unknown 100.0 %");
}

}  // namespace
}  // namespace dynamiccl
