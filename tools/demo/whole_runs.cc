// SPDX-License-Identifier: Apache-2.0
// Runs the trainer in mode adaptive from beginning to end and compares it with NCCL's own choice, on three
// kinds of fabric. NCCL's cost model describes the first correctly and the second wrongly. The third changes
// from the first kind to the second while the job runs.
#include <algorithm>
#include <filesystem>
#include <numeric>

#include "src/base/statistics.h"
#include "tools/demo/demo_steps.h"
#include "tools/demo/trainer_run.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

constexpr int kRanks = 2;
constexpr int kStage = 3;
// Number of training steps that one point of a step-time curve summarises.
constexpr size_t kStepsOfPoint = 10;
// Number of first steps of a run that are left out, because processes start and touch memory for the first
// time.
constexpr size_t kStart = 5;
// A small model: a run has hundreds of steps in seconds, and a step consists mostly of communication.
constexpr TrainingShape kShape{.layers = 4,
                               .hidden = 128,
                               .heads = 4,
                               .sequence = 32,
                               .batch = 2,
                               .micro_steps = 1,
                               .bucket_bytes = 4 << 20,
                               .seed = 31};

struct NamedFabric {
  const char* name;
  std::string topology;  // a preset or a file
};

struct WholeArm {
  const char* name;
  RuntimeOptions runtime;
};

// The rail of FailingRail fails after this many steps, each of which has 11 collectives. Counting calls
// leaves the same number of steps after the failure on fast and on slow machines.
constexpr int kStepsBeforeFailure = 120;
constexpr int kCallsOfStep = 11;

// A topology with two rails. One rail loses three quarters of its speed while the job runs.
std::string FailingRail() {
  return fmt::format(
      "version = 1\nnodes = 2\n[link.inter]\nlatency_us = 30\nbandwidth_gbps = 0.75\nrails = 2\n"
      "[[event]]\nat_call = {}\nrail = 1\ndegrade = 0.25\n",
      kStepsBeforeFailure * kCallsOfStep);
}

// Rules that force one channel, the best config for all large calls if one of two rails is slow.
std::string OneChannel() {
  std::string rules = "version = 1\n";
  for (const char* collective : {"allgather", "reducescatter", "allreduce"})
    rules += fmt::format("[[rule]]\ncollective = \"{}\"\nmin_bytes = \"1K\"\nconfig = \"ring/simple/1\"\n",
                         collective);
  return rules;
}

WholeRunRow RowOf(const NamedFabric& fabric, const WholeArm& arm, const std::vector<double>& step_ms) {
  WholeRunRow row{.fabric = fabric.name, .arm = arm.name, .steps = static_cast<int>(step_ms.size())};
  const auto start = static_cast<std::ptrdiff_t>(std::min(kStart, step_ms.size() - 1));
  const std::vector<double> counted(step_ms.begin() + start, step_ms.end());
  row.mean_ms = Mean(counted);
  row.end_ms = Median(
      std::vector(counted.end() - static_cast<std::ptrdiff_t>((counted.size() + 4) / 5), counted.end()));
  for (size_t at = 0; at + kStepsOfPoint <= step_ms.size(); at += kStepsOfPoint) {
    const auto from = step_ms.begin() + static_cast<std::ptrdiff_t>(at);
    row.curve_ms.push_back(Median(std::vector(from, from + static_cast<std::ptrdiff_t>(kStepsOfPoint))));
  }
  return row;
}

Status RunArm(DemoSession& session, const NamedFabric& fabric, const WholeArm& arm,
              const std::string& label) {
  const TrainerRun run{.stage = kStage,
                       .shape = kShape,
                       .steps = session.plan().whole_steps,
                       .label = label,
                       .runtime = arm.runtime,
                       .topology = fabric.topology,
                       .n_ranks = kRanks};
  const auto steps = RunTrainer(session, run);
  if (!steps) return session.GoOnWithout(label, steps.error());
  session.result().whole_runs.push_back(RowOf(fabric, arm, steps->step_ms));
  return {};
}

Status RunFabric(DemoSession& session, const NamedFabric& fabric, const std::string& policy,
                 const std::string& rules, size_t number) {
  session.Say(
      fmt::format("{}: by default, adaptive from nothing, adaptive once more, one channel", fabric.name));
  const std::string store = session.Output(fmt::format("whole-{}.dcsite", number));
  const RuntimeOptions adaptive{.mode = "adaptive", .policy = policy, .site_store = store};
  const std::vector<WholeArm> arms{{kDefaultArm, {.mode = "observe"}},
                                   {"adaptive", adaptive},
                                   {"adaptive again", adaptive},
                                   {"one channel", {.mode = "frozen", .rules = rules}},
                                   {"default again", {.mode = "observe"}}};
  // Remove the site store that an earlier demo may have left in this folder. It would tell the first run what
  // that run is to find out itself. A run whose store was removed is repeated, so a demo that was killed
  // loses one run.
  std::error_code ignored;
  std::filesystem::remove(store, ignored);
  for (size_t i = 0; i < arms.size(); ++i)
    DYNAMICCL_CHECK_OK(RunArm(session, fabric, arms[i], fmt::format("whole-{}-{}", number, i)));
  if (const auto finding = FindingOfFabric(session.result(), fabric.name)) session.Say(*finding);
  return {};
}

}  // namespace

Status RunWhole(DemoSession& session) {
  const std::string failing = session.Output("failing-rail.toml"), rules = session.Output("one-channel.toml");
  DYNAMICCL_CHECK_OK(WriteTextFile(failing, FailingRail()));
  DYNAMICCL_CHECK_OK(WriteTextFile(rules, OneChannel()));
  DYNAMICCL_TRY(const std::string policy, PolicyFileOf(session.installation(), kStarterWord));
  const std::vector<NamedFabric> fabrics{{"slow rail", "two-nodes-slow-rail"},
                                         {"healthy", "two-nodes-infiniband"},
                                         {"rail that fails", failing}};
  const size_t shown = std::min(fabrics.size(), static_cast<size_t>(session.plan().whole_fabrics));
  for (size_t i = 0; i < shown; ++i) DYNAMICCL_CHECK_OK(RunFabric(session, fabrics[i], policy, rules, i));
  return {};
}

}  // namespace dynamiccl
