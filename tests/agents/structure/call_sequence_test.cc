// SPDX-License-Identifier: Apache-2.0
#include "agents/structure/call_sequence.h"

#include <gtest/gtest.h>

#include "src/fingerprint/call_token.h"
#include "tests/support/zero_stages.h"
#include "traces/format/record_views.h"

namespace dynamiccl::agents {
namespace {

// A section of one rank with one communicator and these calls.
TraceSection SectionOf(int32_t rank, const std::vector<IssuedCall>& calls) {
  TraceSection section;
  section.rank = rank;
  section.records.push_back(CommunicatorRecord(0, {77, rank, 2, 1}, 0));
  for (const IssuedCall& issued : calls) section.records.push_back(CallRecord(0, issued));
  for (TraceRecord& record : section.records) Seal(record);
  return section;
}

ZeroWorkload Workload(int stage) {
  ZeroWorkload workload;
  workload.stage = stage;
  workload.steps = 2;
  return workload;
}

TEST(SequencesOf, TakesEachCommunicatorOnceInProgramOrder) {
  std::vector<IssuedCall> calls = GenerateZeroCalls(Workload(2));
  const size_t count = calls.size();
  Trace trace;
  trace.sections.push_back(SectionOf(1, calls));
  std::swap(calls[0], calls[3]);
  trace.sections.push_back(SectionOf(0, calls));
  const auto sequences = SequencesOf(trace, "run.ctrace");
  ASSERT_EQ(sequences.size(), 1u);
  EXPECT_EQ(sequences[0].calls.size(), count);
  EXPECT_EQ(sequences[0].calls[0].rank, 0);
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(sequences[0].calls[i].call.call_number, i);
}

TEST(SequencesOf, UnlabelledCommunicatorsTeachNothing) {
  std::vector<IssuedCall> calls = GenerateZeroCalls(Workload(0));
  for (IssuedCall& issued : calls) {
    issued.labelled_role = Role::kUnknown;
    issued.labelled_phase = Phase::kUnknown;
    issued.labelled_stage = ZeroStage::kUnknown;
  }
  Trace trace;
  trace.sections.push_back(SectionOf(0, calls));
  EXPECT_TRUE(SequencesOf(trace, "x").empty());
}

// The structure agent of a job does not see sends and receives. So a trace with them must have the tokens of
// its collectives alone.
TEST(SequencesOf, HaveTheTokensOfAJobThatAlsoSendsAndReceives) {
  const std::vector<IssuedCall> collectives = GenerateZeroCalls(Workload(3));
  std::vector<IssuedCall> calls;
  for (const IssuedCall& issued : collectives) {
    for (const Collective kind : {Collective::kSend, Collective::kRecv, Collective::kAllToAll}) {
      IssuedCall other = issued;
      other.call.collective = kind;
      other.call.bytes = 12345;
      calls.push_back(other);
    }
    calls.push_back(issued);
  }
  const Trace trace{{SectionOf(0, calls)}};
  const auto sequences = SequencesOf(trace, "run.ctrace");
  ASSERT_EQ(sequences.size(), 1u);
  ASSERT_EQ(sequences[0].calls.size(), collectives.size());
  CallTokenizer of_job, of_trace;
  for (size_t i = 0; i < collectives.size(); ++i)
    EXPECT_EQ(of_trace.Next(sequences[0].calls[i].call), of_job.Next(collectives[i].call)) << "call " << i;
}

// NCCL asks about the size of each call, but not about its data type, operation or group. Here one group of
// bfloat16 calls becomes single calls of float32.
TEST(AsQuestions, KeepOnlyWhatATunerIsAsked) {
  const std::vector<IssuedCall> calls = GenerateZeroCalls(Workload(2));
  CallSequence asked{"run", calls};
  for (IssuedCall& issued : asked.calls) {
    issued.call.data_type = DataType::kBfloat16;
    issued.call.op = ReduceOp::kMax;
    issued.call.group_size = static_cast<uint16_t>(asked.calls.size());
    issued.call.call_number = 0;
  }
  asked = AsQuestions(std::move(asked));
  CallTokenizer of_questions, of_sequence;
  for (size_t i = 0; i < calls.size(); ++i) {
    const CollectiveCall& call = calls[i].call;
    EXPECT_EQ(of_sequence.Next(asked.calls[i].call),
              of_questions.Next(CallOfQuestion(call.collective, call.bytes, call.n_ranks)));
    EXPECT_EQ(asked.calls[i].call.call_number, i) << "NCCL asks about each call by itself";
    EXPECT_EQ(asked.calls[i].labelled_phase, calls[i].labelled_phase);
  }
}

TEST(Rescale, KeepsOrderLabelsScalarsAndRatios) {
  std::mt19937_64 random(2);
  const CallSequence original{"x", GenerateZeroCalls(Workload(3))};
  for (int round = 0; round < 50; ++round) {
    const CallSequence scaled = Rescale(original, random);
    ASSERT_EQ(scaled.calls.size(), original.calls.size());
    double ratio = 0;
    for (size_t i = 0; i < scaled.calls.size(); ++i) {
      const IssuedCall &a = original.calls[i], &b = scaled.calls[i];
      EXPECT_EQ(a.labelled_role, b.labelled_role);
      EXPECT_EQ(a.call.collective, b.call.collective);
      EXPECT_EQ(b.call.n_ranks, scaled.calls[0].call.n_ranks);
      if (a.call.bytes <= 256) {
        EXPECT_EQ(a.call.bytes, b.call.bytes);
      } else {
        const double now = static_cast<double>(b.call.bytes) / static_cast<double>(a.call.bytes);
        if (ratio == 0) ratio = now;
        EXPECT_NEAR(now / ratio, 1, 0.01);
      }
    }
  }
}

TEST(Rescale, ActivationsStayAmongFewRanks) {
  std::mt19937_64 random(4);
  CallSequence sequence{"x", GenerateZeroCalls(Workload(3))};
  int32_t most = 0;
  for (int round = 0; round < 50; ++round)
    most = std::max(most, Rescale(sequence, random).calls[0].call.n_ranks);
  EXPECT_EQ(most, 128);
  sequence.calls[0].labelled_role = Role::kActivation;
  for (int round = 0; round < 50; ++round) EXPECT_LE(Rescale(sequence, random).calls[0].call.n_ranks, 16);
}

TEST(Reinvent, KeepsRolesPhasesAndSizesAndTellsNoStage) {
  std::mt19937_64 random(3);
  const CallSequence original{"x", GenerateZeroCalls(Workload(3))};
  bool other_reduce = false;
  for (int round = 0; round < 50; ++round) {
    const CallSequence other = Reinvent(original, random);
    size_t i = 0;
    for (const IssuedCall& b : other.calls) {
      while (original.calls[i].call.call_number != b.call.call_number) ++i;
      const IssuedCall& a = original.calls[i];
      EXPECT_EQ(a.labelled_role, b.labelled_role);
      EXPECT_EQ(a.labelled_phase, b.labelled_phase);
      EXPECT_EQ(a.call.bytes, b.call.bytes);
      EXPECT_EQ(b.labelled_stage, ZeroStage::kUnknown);
      other_reduce |= a.labelled_role == Role::kGradientReduce && a.call.collective != b.call.collective;
    }
  }
  EXPECT_TRUE(other_reduce);
}

}  // namespace
}  // namespace dynamiccl::agents
