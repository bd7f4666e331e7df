// SPDX-License-Identifier: Apache-2.0
// For each split, it trains and calibrates the network, trains the alternatives on the same jobs, and judges
// all of them on the same test sequences. The seeds of training, calibration and test jobs differ.
#include "studies/agents/structure/structure_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "agents/structure/structure_calibration.h"

namespace dynamiccl::agents {
namespace {

using Say = std::function<void(const std::string&)>;

// Number of jobs for the thresholds, for each framework and family. They are not the jobs of the training,
// but of the same frameworks and families.
constexpr int kCalibrationJobs = 3;
// Number of steps of a calibration job.
constexpr int kCalibrationSteps = 6;
// Number of steps of a test job.
constexpr int kTestSteps = 4;
// Number of calls of each sequence on which integers are compared with floats.
constexpr int kAgreementCalls = 256;
// Number of changed jobs of each framework that has such a setting.
constexpr int kChangedJobs = 8;
// Number of jobs of each framework and size of buckets.
constexpr int kBucketJobs = 4;

// One split's jobs.
struct Data {
  // Network, forests and Markov model learn from the same jobs.
  JobPlan training;
  std::vector<CallSequence> test;
};

std::vector<CallSequence> Jobs(JobPlan plan, int jobs, int steps, uint64_t seed) {
  std::mt19937_64 random(seed);
  plan.jobs = jobs;
  plan.steps = steps;
  return RandomJobs(plan, random);
}

// A trained network and the policy made from it.
struct Trained {
  FloatStructureNetwork network;
  std::unique_ptr<Policy> policy;
  StructureTrainingReport report;
};

// Trains, quantises and calibrates. The jobs of the calibration have their own seed.
Result<Trained> Learn(const StudySettings& settings, const JobPlan& plan, bool permuted) {
  StructureTrainingSettings training;
  training.seed = settings.seed;
  training.iterations = settings.iterations;
  training.jobs = plan;
  training.permute_labels = permuted;
  Trained trained;
  trained.network = TrainStructure({}, training, &trained.report);
  trained.policy = std::make_unique<Policy>();
  DYNAMICCL_CHECK_OK(ExportStructure(trained.network, trained.policy->tensors));
  JobPlan calibration = plan;
  calibration.invented = 0;
  CalibrateStructure(Jobs(calibration, kCalibrationJobs, kCalibrationSteps, settings.seed + 1), {},
                     trained.policy->tensors);
  return trained;
}

// The policy without "unknown": the likeliest class is always the answer.
Policy AlwaysAnswers(const Policy& policy) {
  Policy always = policy;
  StructureThresholds& thresholds = always.tensors.structure;
  thresholds.role_margin = thresholds.phase_margin = thresholds.stage_margin = 1;
  thresholds.stage_hold_calls = 1;
  return always;
}

StructureAccuracy Named(StructureAccuracy accuracy, const char* name) {
  accuracy.recogniser = name;
  return accuracy;
}

std::vector<StructureAccuracy> JudgeAll(const StudySettings& settings, const Data& data,
                                        const Policy& policy) {
  const std::vector<CallSequence> learnt =
      Jobs(data.training, data.training.jobs, data.training.steps, settings.seed);
  std::mt19937_64 random(settings.seed);
  const StructureForests forests = TrainForests(learnt, random);
  const MarkovModel markov(learnt);
  return {Named(JudgePolicy(AlwaysAnswers(policy), data.test), "LSTM"),
          Named(JudgePolicy(policy, data.test), "LSTM, may say unknown"), JudgeForests(forests, data.test),
          JudgeMarkov(markov, data.test), JudgeRules(data.test)};
}

Result<StudySplit> StudyOne(const StudySettings& settings, const std::string& name, const Data& data,
                            Trained& trained, const Say& say) {
  say(fmt::format("{}: training", name));
  DYNAMICCL_TRY(trained, Learn(settings, data.training, false));
  StudySplit split;
  split.name = name;
  split.training_seconds = trained.report.seconds;
  say(fmt::format("{}: trained in {:.0f} s; judging", name, split.training_seconds));
  split.who = JudgeAll(settings, data, *trained.policy);
  split.agreement = CompareStructure(trained.network, trained.policy->tensors, data.test, kAgreementCalls);
  for (const StructureAccuracy& who : split.who) {
    const Confusions& judged = who.judged[static_cast<size_t>(JudgedCalls::kAfterOneStep)];
    say(fmt::format("  {}: F1 of role {:.3f}, phase {:.3f}, stage {:.3f} after one step", who.recogniser,
                    judged.role_f1(), judged.phase_f1(), judged.stage_f1()));
  }
  say(fmt::format("  integers choose as floats: role {:.2f} %, phase {:.2f} %, stage {:.2f} %",
                  100 * split.agreement.role, 100 * split.agreement.phase, 100 * split.agreement.stage));
  return split;
}

JobPlan PlanOf(const StudySettings& settings) {
  JobPlan plan = Completed({});
  plan.jobs = settings.training_jobs;
  plan.invented = settings.invented;
  return plan;
}

Data FamilyHeldOut(const StudySettings& settings) {
  Data data{PlanOf(settings), {}};
  JobPlan test = data.training;
  test.invented = 0;
  std::erase(data.training.families, settings.family);
  test.families = {settings.family};
  data.test = Jobs(test, settings.test_jobs, kTestSteps, settings.seed + 2);
  return data;
}

Data FrameworkHeldOut(const StudySettings& settings, const FrameworkGroup& group) {
  Data data{PlanOf(settings), {}};
  JobPlan test = data.training;
  test.invented = 0;
  test.frameworks = group.generators;
  std::erase_if(data.training.frameworks,
                [&](std::string_view framework) { return GroupOf(framework) == &group; });
  data.test = Jobs(test, settings.test_jobs, kTestSteps, settings.seed + 2);
  return data;
}

ChangeReport StudyChanges(const StudySettings& settings, const Policy& policy) {
  std::mt19937_64 random(settings.seed + 3);
  std::vector<ChangedJob> changed;
  for (const std::string_view framework : ChangeableFrameworks()) {
    if (!Trains(framework, settings.family)) continue;
    for (int job = 0; job < kChangedJobs; ++job)
      changed.push_back(RandomChangedJob(framework, settings.family, random));
  }
  JobPlan quiet = Completed({});
  quiet.families = {std::string_view(settings.family)};
  ChangeReport report = JudgeChanges(policy, Jobs(quiet, 4, 24, settings.seed + 4), changed);
  report.buckets = JudgeBuckets(policy, settings.family, kBucketJobs, random);
  return report;
}

// The first split: the network that a user gets, judged on jobs that it never saw.
Status StudyKnownFrameworks(const StudySettings& settings, const Say& say, StructureStudy& study) {
  const Data data = FamilyHeldOut(settings);
  Trained trained;
  DYNAMICCL_TRY(StudySplit split,
                StudyOne(settings, "known frameworks, family " + settings.family, data, trained, say));
  if (settings.control) {
    DYNAMICCL_TRY(const Trained permuted, Learn(settings, data.training, true));
    split.who.push_back(
        Named(JudgePolicy(AlwaysAnswers(*permuted.policy), data.test), "LSTM, permuted labels"));
  }
  study.splits.push_back(std::move(split));
  if (!settings.recorded.empty()) {
    StudySplit real;
    real.name = "recorded jobs";
    real.who = JudgeAll(settings, {data.training, settings.recorded}, *trained.policy);
    study.splits.push_back(std::move(real));
  }
  say("changes of sizes");
  study.changes = StudyChanges(settings, *trained.policy);
  return {};
}

}  // namespace

Result<StructureStudy> StudyStructure(const StudySettings& settings, const Say& say) {
  StructureStudy study;
  if (settings.known) DYNAMICCL_CHECK_OK(StudyKnownFrameworks(settings, say, study));
  for (const FrameworkGroup& group : AllFrameworkGroups()) {
    const bool wanted =
        settings.hold_out.empty() ||
        std::find(settings.hold_out.begin(), settings.hold_out.end(), group.name) != settings.hold_out.end();
    if (!wanted) continue;
    Trained trained;
    DYNAMICCL_TRY(StudySplit split, StudyOne(settings, fmt::format("framework {} held out", group.name),
                                             FrameworkHeldOut(settings, group), trained, say));
    study.splits.push_back(std::move(split));
  }
  return study;
}

}  // namespace dynamiccl::agents
