// SPDX-License-Identifier: Apache-2.0
#include "plugin/tuner/question_stream.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "src/policy/policy_file.h"
#include "traces/format/trace_calls.h"
#include "traces/generators/generated_trace.h"
#include "traces/generators/model_shape.h"

namespace dynamiccl {
namespace {

// The number of a job's calls, and of those that were recognised as they are labelled.
struct Right {
  double calls = 0, role = 0, phase = 0, stage = 0;

  void Take(const RecognisedStructure& recognised, const IssuedCall& issued) {
    ++calls;
    role += RoleOfNext(recognised, issued.call.collective, issued.call.bytes) == issued.labelled_role ? 1 : 0;
    phase += recognised.phase == issued.labelled_phase ? 1 : 0;
    stage += recognised.stage == issued.labelled_stage ? 1 : 0;
  }
};

struct Both {
  Right by_calls, by_questions;
};

// Asks one question for each call, as NCCL does for single calls.
Both RecogniseJob(const Policy& policy, const Trace& trace) {
  Both both;
  std::map<uint32_t, StructureAgent> agents;
  std::map<uint32_t, QuestionStream> streams;
  const SectionCalls section = CallsOf(trace.sections.front());
  for (size_t i = 0; i < section.calls.size(); ++i) {
    const TraceCall& call = section.calls[i];
    const CollectiveCall& issued = call.issued.call;
    if (static_cast<int>(issued.collective) >= kTunableCollectives) continue;
    StructureAgent& agent = agents.try_emplace(call.communicator, policy).first->second;
    QuestionStream& stream =
        streams.try_emplace(call.communicator, policy, section.communicators.at(call.communicator).n_ranks)
            .first->second;
    if (i >= section.calls.size() / 2) {
      both.by_calls.Take(agent.recognised(), call.issued);
      both.by_questions.Take(stream.recognised(), call.issued);
    }
    agent.Step(issued);
    stream.Step({issued.collective, issued.bytes});
  }
  return both;
}

TEST(QuestionStream, RecognisesNearlyAsWellAsFromCalls) {
  const auto policy = ReadPolicyFile(STARTER_POLICY);
  ASSERT_TRUE(policy);
  const auto model = ParseModel("gpt");
  ASSERT_TRUE(model);
  for (const char* framework : {"ddp", "fsdp2", "deepspeed1", "deepspeed2", "deepspeed3", "dynamiccl-zero"}) {
    const auto run = GenerateRun(framework, *model, {.data = 8}, {}, 40);
    if (!run) {
      ADD_FAILURE() << framework << ": " << run.error().message;
      continue;
    }
    const Both job = RecogniseJob(**policy, TraceOf(*run, 4));
    fmt::print("{:<12} calls: role {:.3f} phase {:.3f} stage {:.3f}   questions: {:.3f} {:.3f} {:.3f}\n",
               framework, job.by_calls.role / job.by_calls.calls, job.by_calls.phase / job.by_calls.calls,
               job.by_calls.stage / job.by_calls.calls, job.by_questions.role / job.by_calls.calls,
               job.by_questions.phase / job.by_calls.calls, job.by_questions.stage / job.by_calls.calls);
    EXPECT_GT(job.by_questions.phase, job.by_calls.phase - 0.05 * job.by_calls.calls) << framework;
    EXPECT_GT(job.by_questions.role, job.by_calls.role - 0.05 * job.by_calls.calls) << framework;
  }
}

}  // namespace
}  // namespace dynamiccl
