// SPDX-License-Identifier: Apache-2.0
// Tests simple ways of recognising structure, on easy jobs.
#include <gtest/gtest.h>

#include <numeric>

#include "agents/evaluation/structure_accuracy.h"
#include "agents/structure/structure_training.h"
#include "studies/agents/structure/recorded_jobs.h"
#include "studies/agents/structure/structure_changes.h"
#include "studies/agents/structure/structure_forest.h"
#include "studies/agents/structure/structure_markov.h"
#include "tests/support/sample_policy.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl::agents {
namespace {

std::vector<CallSequence> Jobs(uint64_t seed, int jobs) {
  JobPlan plan{{"ddp", "fsdp2"}, {"gpt", "bert"}, jobs, 4};
  std::mt19937_64 random(seed);
  return RandomJobs(plan, random);
}

double ShareRight(const Confusion<kLabelledRoles>& calls, Role role) {
  const auto& row = calls[static_cast<size_t>(role)];
  return static_cast<double>(row[static_cast<size_t>(role)]) /
         static_cast<double>(std::accumulate(row.begin(), row.end(), uint64_t{0}));
}

TEST(MacroF1, IsTheMeanOfTheLabelsThatOccur) {
  Confusion<3> calls{};
  calls[0] = {8, 2, 0};  // label 0: 8 right, 2 taken for label 1
  calls[1] = {0, 5, 5};  // label 1: 5 right, 5 unknown
  // The last column is "unknown". F1 of label 0 is 16 / (10 + 8), and of label 1 it is 10 / (10 + 7).
  EXPECT_NEAR(MacroF1<3>(calls, 2), (16.0 / 18 + 10.0 / 17) / 2, 1e-12);
  EXPECT_EQ(MacroF1<3>(Confusion<3>{}, 2), 0);
}

TEST(StructureBaselines, ForestsAndMarkovModelKnowWhatTheyLearnt) {
  std::mt19937_64 random(4);
  const auto learnt = Jobs(1, 6), unseen = Jobs(2, 3);
  const StructureForests forests = TrainForests(learnt, random);
  const MarkovModel markov(learnt);
  for (const StructureAccuracy& accuracy : {JudgeForests(forests, unseen), JudgeMarkov(markov, unseen)}) {
    EXPECT_GT(accuracy.role.share_right(), 0.9) << accuracy.recogniser;
    EXPECT_GT(accuracy.stage.share_right(), 0.8) << accuracy.recogniser;
    // Both cannot tell scalars from other small calls. This halves the mean over four roles.
    const Confusion<kLabelledRoles>& role = accuracy.judged[0].role;
    EXPECT_GT(ShareRight(role, Role::kParameterGather), 0.9) << accuracy.recogniser;
    EXPECT_GT(ShareRight(role, Role::kGradientReduce), 0.9) << accuracy.recogniser;
    EXPECT_GT(accuracy.judged[0].role_f1(), 0.6) << accuracy.recogniser;
  }
}

TEST(RecordedJobs, WireSequencesAreEightEqualSteps) {
  const auto sequences = WireSequences();
  ASSERT_EQ(sequences.size(), 11u);
  for (const CallSequence& sequence : sequences) {
    ASSERT_EQ(sequence.step_begins.size(), 8u) << sequence.name;
    const size_t step = sequence.step_begins[1];
    ASSERT_EQ(sequence.calls.size(), 8 * step) << sequence.name;
    for (size_t i = step; i < sequence.calls.size(); ++i)
      EXPECT_EQ(sequence.calls[i].call.bytes, sequence.calls[i - step].call.bytes) << sequence.name;
  }
}

TEST(RecordedJobs, NamesSayWhatIsKnown) {
  const auto plain = ParseKnownJob("stage3=a/b.ctrace"), tensor = ParseKnownJob("stage1/8=c=d.csv");
  ASSERT_TRUE(plain && tensor);
  EXPECT_EQ(plain->stage, ZeroStage::kStage3);
  EXPECT_EQ(plain->path, "a/b.ctrace");
  EXPECT_EQ(tensor->tensor_ranks, 8);
  EXPECT_EQ(tensor->path, "c=d.csv");
  for (const char* wrong : {"", "a.csv", "stage=a", "stage4=a", "stage1/=a", "stage1/x=a", "stage12=a"})
    EXPECT_FALSE(ParseKnownJob(wrong)) << wrong;
}

TEST(RecordedJobs, AProfileOfDdpIsLabelledByItsCollectives) {
  const std::string path =
      std::string(DYNAMICCL_SOURCE_DIR) + "/traces/samples/ddp_resnet_2_ranks.pt.trace.json";
  const auto imported = ImportFile(path, "kineto");
  ASSERT_TRUE(imported && imported->trace);
  const auto sequences = LabelKnownJob(*imported->trace, {path, ZeroStage::kStage0, 0});
  ASSERT_EQ(sequences.size(), 1u);
  int gradients = 0, others = 0;
  for (const IssuedCall& issued : sequences.front().calls) {
    gradients += issued.labelled_role == Role::kGradientReduce ? 1 : 0;
    others += issued.labelled_role == Role::kOther ? 1 : 0;
  }
  EXPECT_EQ(gradients, 15);
  EXPECT_EQ(others, 6);
}

TEST(StructureChanges, NewShapesAreSeenAtOnceAndQuietJobsStayQuiet) {
  const auto policy = test::MakeRandomPolicy(6);  // its surprise never reaches an alarm
  std::mt19937_64 random(8);
  std::vector<ChangedJob> changed;
  for (const std::string_view framework : ChangeableFrameworks())
    changed.push_back(RandomChangedJob(framework, "gpt", random));
  for (const ChangedJob& job : changed) {
    ASSERT_GE(job.changed, 512u);
    ASSERT_LT(job.changed, job.sequence.calls.size());
  }
  const ChangeReport report = JudgeChanges(*policy, Jobs(9, 2), changed);
  ASSERT_EQ(report.detectors.size(), 3u);
  EXPECT_EQ(report.detectors[0].seen_within_16, 0u);
  for (const size_t with_shapes : {1, 2}) {
    EXPECT_EQ(report.detectors[with_shapes].false_alarms, 0u);
    EXPECT_EQ(report.detectors[with_shapes].seen_within_2, changed.size());
  }
}

}  // namespace
}  // namespace dynamiccl::agents
