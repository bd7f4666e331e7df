// SPDX-License-Identifier: Apache-2.0
// There are two kinds of jobs. `plain` jobs are of every framework on five models, with the framework's own
// settings. `random` jobs are drawn as in training, with another seed.
#include "studies/agents/structure/policy_states.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "agents/evaluation/structure_accuracy.h"
#include "agents/structure/framework_sequences.h"
#include "agents/structure/structure_training.h"
#include "src/base/statistics.h"
#include "src/policy/policy_file.h"
#include "src/policy/structure_network.h"

namespace dynamiccl::agents {
namespace {

// Number of steps of a job.
constexpr int kSteps = 6;
// A step that has not settled after this many calls counts as settled at that call.
constexpr size_t kMaxCalls = 40'000;
// A repeated step should settle within this many calls.
constexpr size_t kSettledCalls = 500;

// True if the framework has the setting.
bool Has(const FrameworkGenerator& framework, std::string_view name) {
  return std::ranges::any_of(framework.settings(),
                             [&](const GeneratorSetting& row) { return row.name == name; });
}

// Returns the busiest communicator of each job that a framework accepts.
std::vector<CallSequence> PlainJobs() {
  std::vector<CallSequence> all;
  for (const FrameworkGenerator* framework : AllFrameworkGenerators()) {
    for (const char* model : {"gpt:layers=6", "gpt", "llama", "bert", "resnet"}) {
      for (const int ranks : {2, 16}) {
        for (const char* type : {"float32", "bfloat16"}) {
          const bool typed = Has(*framework, "dtype");
          if (!typed && type != std::string_view("float32")) continue;
          const SettingTexts settings = typed ? SettingTexts{{"dtype", type}} : SettingTexts{};
          const auto run = RunOf({framework->name(), model, {.data = ranks}, settings}, kSteps);
          if (!run) continue;
          std::vector<CallSequence> sequences =
              SequencesOf(*run, fmt::format("{} {}", run->framework, model));
          const auto calls = [](const CallSequence& sequence) { return sequence.calls.size(); };
          all.push_back(std::move(*std::ranges::max_element(sequences, {}, calls)));
        }
      }
    }
  }
  return all;
}

// Returns the number of calls after `before` until a repetition of `step` ends in a state in which an earlier
// repetition ended.
size_t CallsUntilSettled(const StructureNetwork& network, std::span<const IssuedCall> before,
                         std::span<const IssuedCall> step) {
  CallTokenizer tokenizer;
  LstmState state;
  const auto run = [&](std::span<const IssuedCall> calls) {
    for (const IssuedCall& issued : calls) network.StepOverCall(tokenizer.Next(issued.call), state);
  };
  run(before);
  std::vector<LstmState> ends{state};
  for (size_t calls = step.size(); calls < kMaxCalls; calls += step.size()) {
    run(step);
    if (std::ranges::find(ends, state) != ends.end()) return calls;
    ends.push_back(state);
  }
  return kMaxCalls;
}

// Returns the step that interposer_overhead_bench repeats: AllReduces of 16 sizes.
std::vector<IssuedCall> StepOf16(int ranks) {
  std::vector<IssuedCall> step(16);
  for (size_t i = 0; i < step.size(); ++i) {
    step[i].call.bytes = uint64_t{256} << i;
    step[i].call.n_ranks = ranks;
  }
  return step;
}

// Adds a matrix so that all its calls together weigh as much as those of any other.
template <size_t kClasses>
void AddEvenly(Confusion<kClasses>& sum, const Confusion<kClasses>& part) {
  uint64_t all = 0;
  for (const auto& row : part)
    for (const uint64_t calls : row) all += calls;
  for (size_t i = 0; all > 0 && i < kClasses; ++i)
    for (size_t j = 0; j < kClasses; ++j) sum[i][j] += part[i][j] * 1'000'000 / all;
}

// Prints F1 with every sequence weighing the same, and the shares of right and wrong answers of all calls.
void PrintAccuracy(const char* jobs, const StructureAccuracy& accuracy) {
  Confusions even;
  for (const SequenceResult& sequence : accuracy.sequences) {
    const Confusions& own = sequence.judged[static_cast<size_t>(JudgedCalls::kAfterOneStep)];
    AddEvenly(even.role, own.role);
    AddEvenly(even.phase, own.phase);
    AddEvenly(even.stage, own.stage);
  }
  fmt::print("  {} jobs, {} sequences: F1 of role, phase, stage {:.3f}, {:.3f}, {:.3f}; right, wrong %:",
             jobs, accuracy.sequences.size(), even.role_f1(), even.phase_f1(), even.stage_f1());
  for (const Recognition& part : {accuracy.role, accuracy.phase, accuracy.stage})
    fmt::print(" {:.1f}, {:.1f};", 100 * part.share_right(),
               100.0 * static_cast<double>(part.wrong) / static_cast<double>(part.calls()));
  fmt::print("\n");
}

void PrintSettling(const StructureNetwork& network, const std::vector<CallSequence>& jobs) {
  std::vector<double> calls;
  for (const CallSequence& job : jobs) {
    const std::span<const IssuedCall> all(job.calls);
    const size_t last = job.step_begins.back();
    calls.push_back(static_cast<double>(CallsUntilSettled(network, all.first(last), all.subspan(last))));
  }
  const auto soon = std::ranges::count_if(calls, [](double n) { return n <= kSettledCalls; });
  std::ranges::sort(calls);
  fmt::print("  settled: median {:.0f}, 90 % {:.0f}, most {:.0f} calls; {} of {} within {}\n", Median(calls),
             calls[calls.size() * 9 / 10], calls.back(), soon, calls.size(), kSettledCalls);
  fmt::print("  the step of 16 on 2, 4, 8, 16, 64 ranks:");
  for (const int ranks : {2, 4, 8, 16, 64})
    fmt::print(" {}", CallsUntilSettled(network, {}, StepOf16(ranks)));
  fmt::print("\n");
}

}  // namespace

Status PrintStates(const StatesSettings& settings) {
  const std::vector<CallSequence> plain = PlainJobs();
  JobPlan plan = Completed({});
  plan.jobs = settings.jobs;
  plan.steps = kSteps;
  std::mt19937_64 random(settings.seed);
  const std::vector<CallSequence> drawn = RandomJobs(plan, random);
  for (const std::string& path : settings.policies) {
    DYNAMICCL_TRY(const auto policy, ReadPolicyFile(path));
    fmt::print("{}\n", path);
    PrintAccuracy("plain", JudgePolicy(*policy, plain));
    PrintAccuracy("random", JudgePolicy(*policy, drawn));
    PrintSettling(StructureNetwork(policy->tensors), plain);
  }
  return {};
}

}  // namespace dynamiccl::agents
