// SPDX-License-Identifier: Apache-2.0
#include "agents/evaluation/structure_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "agents/trigger/trigger_calibration.h"

namespace dynamiccl::agents {
namespace {

using Say = std::function<void(const std::string&)>;

// Jobs for the thresholds: other ones of the training's frameworks and families.
constexpr int kCalibrationJobs = 3;
constexpr int kCalibrationSteps = 6;
constexpr int kTestSteps = 4;
constexpr int kAgreementCalls = 256;
constexpr int kChangedJobs = 8;  // of each framework with such a setting
constexpr int kBucketJobs = 4;   // of each framework and size of buckets

struct Data {
  JobPlan training;  // network, forests and Markov model learn from the same jobs
  std::vector<CallSequence> test;
};

std::vector<CallSequence> Jobs(JobPlan plan, int jobs, int steps, uint64_t seed) {
  std::mt19937_64 random(seed);
  plan.jobs = jobs;
  plan.steps = steps;
  return RandomJobs(plan, random);
}

struct Trained {
  TriggerNetwork network;
  std::unique_ptr<Policy> policy;
  TriggerTrainingReport report;
};

// Seeds of a split's jobs are apart from those of every other.
Result<Trained> Learn(const StudySettings& settings, const JobPlan& plan, bool permuted) {
  TriggerTrainingSettings training;
  training.seed = settings.seed;
  training.iterations = settings.iterations;
  training.jobs = plan;
  training.permute_labels = permuted;
  Trained trained;
  trained.network = TrainTrigger({}, training, &trained.report);
  trained.policy = std::make_unique<Policy>();
  DYNAMICCL_CHECK_OK(ExportTrigger(trained.network, trained.policy->tensors));
  CalibrateTrigger(Jobs(plan, kCalibrationJobs, kCalibrationSteps, settings.seed + 1), {},
                   trained.policy->tensors);
  return trained;
}

// As the policy, but without "unknown": the likeliest class always.
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
  split.agreement = CompareTrigger(trained.network, trained.policy->tensors, data.test, kAgreementCalls);
  return split;
}

JobPlan PlanOf(const StudySettings& settings) {
  JobPlan plan = Completed({});
  plan.jobs = settings.training_jobs;
  return plan;
}

Data FamilyHeldOut(const StudySettings& settings) {
  Data data{PlanOf(settings), {}};
  JobPlan test = data.training;
  std::erase(data.training.families, settings.family);
  test.families = {settings.family};
  data.test = Jobs(test, settings.test_jobs, kTestSteps, settings.seed + 2);
  return data;
}

Data FrameworkHeldOut(const StudySettings& settings, const FrameworkGroup& group) {
  Data data{PlanOf(settings), {}};
  JobPlan test = data.training;
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

// The first split: the network that a user gets, on what it never saw.
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

// ---- the report ----

std::string Scores(const Confusions& judged) {
  return fmt::format("{:>6.3f} {:>6.3f} {:>6.3f}", judged.role_f1(), judged.phase_f1(), judged.stage_f1());
}

double Percent(uint64_t part, uint64_t of) {
  return of == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(of);
}

void AppendSplit(const StudySplit& split, std::string& text) {
  text += fmt::format("\n{}, {} sequences\n", split.name, split.who.front().sequences.size());
  text += fmt::format("  {:<24} {:<22} {:<22} {:<20} {}\n", "macro F1", "after one step", "after 64 calls",
                      "% unknown, all calls", "% wrong, all calls");
  text += fmt::format("  {:<24} {:<22} {:<22} {:<20} {}\n", "", "  role  phase  stage",
                      "  role  phase  stage", " role phase stage", " role phase stage");
  for (const StructureAccuracy& who : split.who) {
    const auto unknown = [](const Recognition& r) { return Percent(r.unknown, r.calls()); };
    const auto wrong = [](const Recognition& r) { return Percent(r.wrong, r.calls()); };
    text += fmt::format("  {:<24} {:<22} {:<22} {:>5.1f} {:>5.1f} {:>5.1f}    {:>5.1f} {:>5.1f} {:>5.1f}\n",
                        who.recogniser, Scores(who.judged[0]), Scores(who.judged[1]), unknown(who.role),
                        unknown(who.phase), unknown(who.stage), wrong(who.role), wrong(who.phase),
                        wrong(who.stage));
  }
}

// After one step, all sequences of a framework together.
std::map<std::string, Confusions> ByFramework(const StructureAccuracy& who) {
  std::map<std::string, Confusions> sums;
  for (const SequenceResult& sequence : who.sequences) sums[sequence.framework].Add(sequence.judged[0]);
  return sums;
}

void AppendFrameworks(const StudySplit& split, std::string& text) {
  text += fmt::format("  {:<24}", "F1 of role and stage by");
  for (const StructureAccuracy& who : split.who) text += fmt::format(" {:<11.11} |", who.recogniser);
  text += "\n";
  for (const auto& [framework, sum] : ByFramework(split.who.front())) {
    text += fmt::format("  {:<24}", framework);
    for (const StructureAccuracy& who : split.who) {
      const Confusions judged = ByFramework(who).at(framework);
      text += fmt::format(" {:.3f} {:.3f} |", judged.role_f1(), judged.stage_f1());
    }
    text += "\n";
  }
}

// Each sequence by itself: roles after one step.
void AppendSequences(const StudySplit& split, std::string& text) {
  const auto& first = split.who.front().sequences;
  text += fmt::format("  {:<58}", "F1 of role and phase after one step by");
  for (const StructureAccuracy& who : split.who) text += fmt::format(" {:<9.9} |", who.recogniser);
  text += "\n";
  for (size_t i = 0; i < first.size(); ++i) {
    text += fmt::format("  {:<58}", first[i].name.substr(0, 58));
    for (const StructureAccuracy& who : split.who) {
      const Confusions& judged = who.sequences[i].judged[0];
      text += fmt::format(" {:.2f} {:.2f} |", judged.role_f1(), judged.phase_f1());
    }
    text += fmt::format(" stage {} taken for {}\n", Name(first[i].true_stage),
                        Name(split.who[1].sequences[i].recognised_stage));
  }
}

using Json = nlohmann::ordered_json;

Json ToJson(const Confusions& judged) {
  return {{"role_f1", judged.role_f1()}, {"phase_f1", judged.phase_f1()}, {"stage_f1", judged.stage_f1()},
          {"role", judged.role},         {"phase", judged.phase},         {"stage", judged.stage}};
}

Json ToJson(const StudySplit& split) {
  Json who = Json::array();
  for (const StructureAccuracy& accuracy : split.who) {
    Json sequences = Json::array();
    for (const SequenceResult& sequence : accuracy.sequences) {
      sequences.push_back({{"name", sequence.name},
                           {"after_one_step", ToJson(sequence.judged[0])},
                           {"true_stage", Name(sequence.true_stage)},
                           {"recognised_stage", Name(sequence.recognised_stage)}});
    }
    who.push_back({{"recogniser", accuracy.recogniser},
                   {"after_one_step", ToJson(accuracy.judged[0])},
                   {"after_64_calls", ToJson(accuracy.judged[1])},
                   {"sequences", std::move(sequences)}});
  }
  return {
      {"split", split.name},
      {"training_seconds", split.training_seconds},
      {"integers_as_floats",
       {{"role", split.agreement.role}, {"phase", split.agreement.phase}, {"stage", split.agreement.stage}}},
      {"who", std::move(who)}};
}

}  // namespace

Result<StructureStudy> StudyStructure(const StudySettings& settings, const Say& say) {
  StructureStudy study;
  DYNAMICCL_CHECK_OK(StudyKnownFrameworks(settings, say, study));
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

std::string FormatTables(const StructureStudy& study) {
  std::string text;
  for (const StudySplit& split : study.splits) {
    AppendSplit(split, text);
    if (split.training_seconds == 0) {
      AppendSequences(split, text);
      continue;
    }
    text += fmt::format(
        "  integers choose as floats: role {:.2f} %, phase {:.2f} %, stage {:.2f} %; trained in {:.0f} s\n",
        100 * split.agreement.role, 100 * split.agreement.phase, 100 * split.agreement.stage,
        split.training_seconds);
    AppendFrameworks(split, text);
  }
  text += "\nChanges of sizes\n";
  for (const DetectorResult& d : study.changes.detectors) {
    text += fmt::format(
        "  {:<18} {:>3} of {} seen within 2 calls, {} within 16; {} false alarms in {} quiet calls ({:.2f} "
        "in 20,000)\n",
        d.detector, d.seen_within_2, d.changes, d.seen_within_16, d.false_alarms, d.quiet_calls,
        d.alarms_in_20000());
  }
  text += "  buckets changed to a size, seen within 2 calls by both:";
  for (const BucketResult& bucket : study.changes.buckets)
    text += fmt::format(" {} KiB {} of {};", bucket.bytes >> 10, bucket.seen_within_2, bucket.changes);
  text.back() = '\n';
  return text;
}

std::string FormatJson(const StructureStudy& study) {
  Json splits = Json::array(), changes = Json::array(), buckets = Json::array();
  for (const StudySplit& split : study.splits) splits.push_back(ToJson(split));
  for (const DetectorResult& d : study.changes.detectors) {
    changes.push_back({{"detector", d.detector},
                       {"changes", d.changes},
                       {"seen_within_2_calls", d.seen_within_2},
                       {"seen_within_16_calls", d.seen_within_16},
                       {"quiet_calls", d.quiet_calls},
                       {"false_alarms", d.false_alarms}});
  }
  for (const BucketResult& bucket : study.changes.buckets) {
    buckets.push_back({{"bytes", bucket.bytes},
                       {"changes", bucket.changes},
                       {"seen_within_2_calls", bucket.seen_within_2}});
  }
  const Json json = {
      {"splits", std::move(splits)}, {"changes", std::move(changes)}, {"buckets", std::move(buckets)}};
  return json.dump(1) + "\n";
}

}  // namespace dynamiccl::agents
