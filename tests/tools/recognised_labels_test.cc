// SPDX-License-Identifier: Apache-2.0
#include "tools/report/recognised_labels.h"

#include <gtest/gtest.h>

#include "src/policy/policy_file.h"
#include "src/policy/structure_inference.h"
#include "tools/report/report.h"
#include "tools/report/run_report.h"
#include "traces/format/record_views.h"
#include "traces/format/trace_writer.h"

namespace dynamiccl {
namespace {

// Steps of fully sharded training. Units are gathered in the forward pass and again in the backward pass,
// with a reduction after each of the latter.
class Job {
 public:
  Job() {
    section.rank = 0;
    section.records.push_back(CommunicatorRecord(0, info_, 0));
    Seal(section.records.back());
  }
  void Step(int units = 8) {
    for (int unit = 0; unit < units; ++unit) Call(Collective::kAllGather);
    for (int unit = 0; unit < units; ++unit) {
      if (unit > 0) Call(Collective::kAllGather);
      Call(Collective::kReduceScatter);
    }
  }
  void Call(Collective collective, Role labelled = Role::kUnknown) { Group({collective}, labelled); }
  void Group(const std::vector<Collective>& collectives, Role labelled = Role::kUnknown) {
    const auto size = static_cast<uint16_t>(collectives.size());
    for (uint16_t i = 0; i < size; ++i) {
      IssuedCall issued;
      issued.call = {7, number_, 14 << 20,     collectives[i], DataType::kFloat32, ReduceOp::kSum,
                     i, size,    info_.n_ranks};
      issued.issued_ns = static_cast<int64_t>(1'000'000 * (number_ + 1));
      issued.labelled_role = labelled;
      section.records.push_back(CallRecord(0, issued));
      Seal(section.records.back());
    }
    ++number_;
  }
  TraceSection section;

 private:
  CommunicatorInfo info_{.id = 7, .rank = 0, .n_ranks = 8, .n_nodes = 2};
  uint64_t number_ = 0;
};

NamedPolicy Starter() {
  auto policy = ReadPolicyFile(STARTER_POLICY);
  EXPECT_TRUE(policy);
  return {STARTER_POLICY, std::move(*policy)};
}

TEST(RecognisedLabels, OfFullyShardedTraining) {
  Job job;
  for (int step = 0; step < 20; ++step) job.Step();
  ASSERT_TRUE(LabelByPolicy(*Starter().policy, job.section));
  int calls = 0, right = 0, third = 0;
  for (size_t i = job.section.records.size() / 2; i < job.section.records.size(); ++i) {
    const TraceRecord& record = job.section.records[i];
    EXPECT_TRUE(IsWhole(record));
    const bool gathers = record.collective == static_cast<uint8_t>(Collective::kAllGather);
    ++calls;
    right += LabelledRole(record) == (gathers ? Role::kParameterGather : Role::kGradientReduce) ? 1 : 0;
    third += LabelledStage(record) == ZeroStage::kStage3 ? 1 : 0;
  }
  EXPECT_GT(right, calls * 9 / 10);
  EXPECT_GT(third, calls * 9 / 10);
}

// A job asks its tuner about all calls of a group before its agent has seen any of them (CloseGroup in
// plugin/interpose/call_stream.cc).
TEST(RecognisedLabels, OfCallsInGroupsAreWhatAJobRecognisesBeforeTheGroup) {
  constexpr auto kGather = Collective::kAllGather, kScatter = Collective::kReduceScatter;
  Job job;
  for (int step = 0; step < 20; ++step) {
    for (int unit = 0; unit < 4; ++unit) job.Group({kGather, kGather});
    for (int unit = 0; unit < 4; ++unit) job.Group({kGather, kScatter, kScatter});
  }
  const TraceSection bare = job.section;
  ASSERT_TRUE(LabelByPolicy(*Starter().policy, job.section));
  StructureAgent of_job(*Starter().policy);
  RecognisedStructure known;
  int known_calls = 0, differ_inside = 0;
  for (size_t i = 1; i < bare.records.size(); ++i) {
    const CollectiveCall call = IssuedCallOf(bare.records[i], {.id = 7, .rank = 0, .n_ranks = 8}).call;
    if (call.index_in_group == 0) known = of_job.recognised();
    const Role role = RoleOfNext(known, call.collective, call.bytes);
    EXPECT_EQ(LabelledRole(job.section.records[i]), role) << "record " << i;
    EXPECT_EQ(LabelledPhase(job.section.records[i]), known.phase) << "record " << i;
    EXPECT_EQ(LabelledStage(job.section.records[i]), known.stage) << "record " << i;
    known_calls += role != Role::kUnknown ? 1 : 0;
    differ_inside +=
        known.next_role != of_job.recognised().next_role || known.phase != of_job.recognised().phase;
    of_job.Step(call);
  }
  EXPECT_GT(known_calls, 100);
  EXPECT_GT(differ_inside, 0) << "the agent's answer changes inside groups";
}

TEST(RecognisedLabels, OfTheJobsOwnDecisions) {
  Job job;
  job.Step();
  EXPECT_FALSE(LabelByDecisions(job.section)) << "nothing was decided";
  CollectiveCall call;
  call.call_number = 1;
  job.section.records.push_back(DecisionRecord(
      0, call, {.role = Role::kBackwardGather, .phase = Phase::kBackward, .stage = ZeroStage::kStage3}));
  const Trace trace{{job.section}};
  const Recogniser recogniser{.decisions = true, .policy = Starter().policy, .name = "starter.dcpolicy"};
  const auto run = ReadRun("t.ctrace", MemoryRecords(trace), recogniser, "");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->recognised_by, "the job's own policy");
  EXPECT_TRUE(LabelByDecisions(job.section));
  const TraceSection& section = job.section;
  for (size_t i = 0; i < section.records.size(); ++i) {
    if (section.records[i].kind == static_cast<uint16_t>(RecordKind::kDecision)) continue;
    const bool decided = i > 0 && section.records[i].call_number == 1;
    EXPECT_EQ(LabelledRole(section.records[i]), decided ? Role::kParameterGather : Role::kUnknown);
    EXPECT_EQ(LabelledPhase(section.records[i]), decided ? Phase::kBackward : Phase::kUnknown);
    EXPECT_TRUE(!decided || IsWhole(section.records[i]));
  }
}

TEST(RecognisedLabels, OfAllSectionsByThePolicyThatIsNamed) {
  Job job;
  for (int step = 0; step < 20; ++step) job.Step();
  Trace trace{{job.section, job.section}};
  EXPECT_EQ(*RecogniseSections("", "", trace), "") << "no policy at hand";
  EXPECT_FALSE(RecogniseSections("/missing.dcpolicy", STARTER_POLICY, trace));
  const auto by = RecogniseSections("", STARTER_POLICY, trace);
  ASSERT_TRUE(by) << by.error().message;
  EXPECT_EQ(*by, "starter.dcpolicy");
  for (const TraceSection& section : trace.sections)
    EXPECT_NE(LabelledRole(section.records.back()), Role::kUnknown);
  EXPECT_EQ(*RecogniseSections("", STARTER_POLICY, trace), "") << "the labels stay";
}

TEST(RecognisedLabels, WhatTheProgramSaidStays) {
  Job job;
  job.Step();
  job.Call(Collective::kAllReduce, Role::kScalar);
  const TraceSection before = job.section;
  EXPECT_FALSE(LabelByPolicy(*Starter().policy, job.section));
  EXPECT_EQ(job.section, before);
}

// The reference is the report of the trace that LabelByPolicy has labelled.
TEST(RecognisedLabels, ThePolicyRecognisesARunThatIsNotKept) {
  Job job;
  for (int step = 0; step < 20; ++step) job.Step();
  const Trace trace{{job.section}};
  const auto none = ReadRun("t.ctrace", MemoryRecords(trace), {}, "");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->recognised_by, "") << "no policy at hand";
  const Recogniser recogniser{.decisions = true, .policy = Starter().policy, .name = "starter.dcpolicy"};
  const auto run = ReadRun("t.ctrace", MemoryRecords(trace), recogniser, "");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->recognised_by, "starter.dcpolicy");
  Trace labelled = trace;
  ASSERT_TRUE(LabelByPolicy(*Starter().policy, labelled.sections[0]));
  const auto same = ReadRun("t.ctrace", MemoryRecords(labelled), recogniser, "starter.dcpolicy");
  ASSERT_TRUE(same);
  EXPECT_EQ(RunJson(*run, {}), RunJson(*same, {}));
  EXPECT_NE(RunJson(*run, {})["stages"], RunJson(*none, {})["stages"]);
}

TEST(RecognisedLabels, AMissingPolicyIsAnErrorWhereATraceNeedsOne) {
  const std::string path = ::testing::TempDir() + "unlabelled.ctrace";
  Job job;
  for (int step = 0; step < 3; ++step) job.Step();
  ASSERT_TRUE(WriteTrace(path, {{job.section}}));
  EXPECT_FALSE(ReadReportInputs({path}, "/missing.dcpolicy"));
  const auto inputs = ReadReportInputs({STARTER_POLICY, path}, "/missing.dcpolicy");
  ASSERT_TRUE(inputs) << "the inputs' policy comes first";
  EXPECT_EQ(inputs->traces[0].run->recognised_by, "starter.dcpolicy");
}

}  // namespace
}  // namespace dynamiccl
