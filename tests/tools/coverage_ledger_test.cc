// SPDX-License-Identifier: Apache-2.0
#include "tools/report/coverage_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/collective/size_class.h"

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

SectionCalls SectionOf(std::vector<TraceCall> calls) {
  SectionCalls section;
  section.calls = std::move(calls);
  return section;
}

TEST(CoverageLedger, ATimedCallSpeaksForTheCallsLikeIt) {
  // Four tunable calls take 30 us each, of which one was timed. Two pinned calls take 40 us each on average,
  // both timed.
  const CoverageLedger ledger =
      LedgerOf(SectionOf({CallOf(Coverage::kTunable, 1024, -1), CallOf(Coverage::kTunable, 1024, 30000),
                          CallOf(Coverage::kTunable, 1024, -1), CallOf(Coverage::kTunable, 1024, -1),
                          CallOf(Coverage::kPinned, 2048, 50000), CallOf(Coverage::kPinned, 2048, 30000)}));
  EXPECT_EQ(ledger.estimated_calls, 6);
  EXPECT_DOUBLE_EQ(ledger.of[static_cast<size_t>(Coverage::kTunable)].ns, 120000);
  EXPECT_DOUBLE_EQ(ledger.of[static_cast<size_t>(Coverage::kPinned)].ns, 80000);
  EXPECT_EQ(Describe(ledger), "tunable 60.0 % of the communication time; pinned 40.0 %");
}

TEST(CoverageLedger, AKindWithoutATimeMakesItCountBytes) {
  const CoverageLedger ledger =
      LedgerOf(SectionOf({CallOf(Coverage::kTunable, 1000, 30000), CallOf(Coverage::kNotAsked, 8000, -1),
                          CallOf(Coverage::kPointToPoint, 1000, -1, Collective::kSend)}));
  EXPECT_EQ(ledger.estimated_calls, 1);
  EXPECT_EQ(
      Describe(ledger),
      "tunable 10.0 % of the bytes (not all calls were timed); not_asked 80.0 %, point_to_point 10.0 %");
}

TEST(CoverageLedger, SaysWhatTheProgramWaitsFor) {
  SectionCalls section =
      SectionOf({CallOf(Coverage::kTunable, 1024, 60000), CallOf(Coverage::kTunable, 4096, 20000),
                 CallOf(Coverage::kPinned, 1024, 20000)});
  section.waited_shares = {
      {0, 0, Collective::kAllReduce, LowerBound(SizeClassOf(1024)), Role::kUnknown, 0.9},
      {9, 0, Collective::kAllReduce, LowerBound(SizeClassOf(1024)), Role::kUnknown, 0.25},
      {9, 1, Collective::kAllReduce, LowerBound(SizeClassOf(4096)), Role::kUnknown, 1}};
  const CoverageLedger ledger = LedgerOf(section);
  EXPECT_DOUBLE_EQ(ledger.exposed.known_ns, 60000) << "the other is known on another communicator only";
  EXPECT_DOUBLE_EQ(ledger.exposed.waited_ns, 15000) << "the last share counts";
  EXPECT_EQ(
      Describe(ledger),
      "tunable 80.0 % of the communication time; pinned 20.0 %; the program waits for 25 % of 75 % of the "
      "tunable time, more is not known");
  EXPECT_DOUBLE_EQ(ToJson(ledger)["exposed"]["waited_seconds"].get<double>(), 15e-6);
}

TEST(CoverageLedger, OfCallsInGroupsItIsNotKnown) {
  SectionCalls section =
      SectionOf({CallOf(Coverage::kTunable, 1024, 30000), CallOf(Coverage::kTunable, 1024, 60000)});
  section.calls[1].issued.call.group_size = 2;  // NCCL may have asked about 2048 bytes.
  section.waited_shares = {{0, 0, Collective::kAllReduce, LowerBound(SizeClassOf(1024)), Role::kUnknown, 1}};
  EXPECT_DOUBLE_EQ(LedgerOf(section).exposed.known_ns, 30000);
}

TEST(CoverageLedger, SharesOfSeveralRolesCountAlike) {
  SectionCalls section = SectionOf({CallOf(Coverage::kTunable, 1024, 60000)});
  const uint64_t bytes = LowerBound(SizeClassOf(1024));
  section.waited_shares = {{0, 0, Collective::kAllReduce, bytes, Role::kActivation, 1},
                           {0, 0, Collective::kAllReduce, bytes, Role::kGradientReduce, 0}};
  EXPECT_EQ(Describe(LedgerOf(section)),
            "tunable 100.0 % of the communication time; the program waits for 50 % of the tunable time");
}

TEST(CoverageLedger, NamesTheGathersWhoseLatencyIsCritical) {
  const auto gather = [](uint64_t bytes, int64_t ns, Role role) {
    TraceCall call = CallOf(Coverage::kTunable, bytes, ns, Collective::kAllGather);
    call.decision = DecisionView{};
    call.decision->role = role;
    return call;
  };
  SectionCalls section = SectionOf(
      {gather(1024, 30000, Role::kParameterGather), gather(4096, 20000, Role::kBackwardGather),
       gather(1 << 20, 40000, Role::kParameterGather), gather(1 << 24, 10000, Role::kPostStepGather)});
  const auto share = [](uint64_t bytes, Role role, double of) {
    return WaitedShareView{0, 0, Collective::kAllGather, LowerBound(SizeClassOf(bytes)), role, of};
  };
  section.waited_shares = {share(1024, Role::kParameterGather, 0.9), share(4096, Role::kBackwardGather, 0.8),
                           share(1 << 20, Role::kParameterGather, 0.5),
                           share(1 << 24, Role::kPostStepGather, 1)};
  const CoverageLedger ledger = LedgerOf(section);
  EXPECT_DOUBLE_EQ(ledger.exposed.critical_ns, 50000);
  EXPECT_EQ(
      Describe(ledger),
      "tunable 100.0 % of the communication time; the program waits for 73 % of the tunable time; gathers "
      "of parameters that it waits for (latency-critical) take 50 % of the tunable time");
  EXPECT_DOUBLE_EQ(ToJson(ledger)["exposed"]["latency_critical_seconds"].get<double>(), 50e-6);
}

TEST(CoverageLedger, SaysNothingOfNothing) {
  EXPECT_EQ(Describe(LedgerOf({})), "");
  EXPECT_EQ(Describe(LedgerOf(SectionOf({CallOf(Coverage::kUnknown, 0, -1)}))),
            "tunable 0.0 % of the calls; unknown 100.0 %");
}

}  // namespace
}  // namespace dynamiccl
