// SPDX-License-Identifier: Apache-2.0
// Runs the demo's steps in their order and records how the result came about.
#include "tools/demo/demo.h"

#include <sys/utsname.h>

#include <ctime>

#include "tools/demo/demo_steps.h"
#include "tools/launch/machine_description.h"
#include "tools/report/report.h"
#include "tools/version.h"

namespace dynamiccl {
namespace {

// The current time in ISO 8601, UTC.
std::string NowText() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string ShapeText(const TrainingShape& shape) {
  return fmt::format("{} layers, width {}, {} heads, sequence {}, batch {}, bucket {}, seed {}", shape.layers,
                     shape.hidden, shape.heads, shape.sequence, shape.batch,
                     FormatBytes(static_cast<uint64_t>(shape.bucket_bytes)), shape.seed);
}

// The size classes whose measurements the agents did not see, as text.
std::string HeldOutText(const SweptConfigs& swept) {
  std::string text;
  for (const auto& [collective, classes] : swept.held_out_classes) {
    for (const SizeClass size_class : classes) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", Name(collective), Name(size_class));
    }
  }
  return text;
}

// Records the machine, the versions, the models' shapes and the duration, so that a reader can repeat the
// demo.
void AddProvenance(DemoSession& session, const SweptConfigs& swept) {
  const DemoPlan& plan = session.plan();
  DemoResult& result = session.result();
  utsname system{};
  ::uname(&system);
  result.created = NowText();
  result.quick = plan.quick;
  result.provenance = {
      {"dynamiccl", kVersion},
      {"machine", fmt::format("{}, Linux {}", MachineDescription(), system.release)},
      {"NCCL", swept.all.library},
      {"text", session.text()},
      {"job", fmt::format("{} ranks on topology {}", plan.n_ranks, plan.topology)},
      {"evaluated shape", ShapeText(plan.held_out_shape)},
      {"policy", "the starter, trained further on the recorded runs and the sweep"},
      {"held-out topology", plan.held_out_topology},
      {"held-out size classes", HeldOutText(swept)},
      {"command", plan.quick ? "dynamiccl demo --quick" : "dynamiccl demo"},
      {"seconds", fmt::format("{:.0f}", session.Elapsed())},
  };
  for (const TrainingShape& shape : plan.training_shapes)
    result.provenance.push_back({"trained shape", ShapeText(shape)});
}

Status WriteReport(DemoSession& session, const SweptConfigs& swept) {
  const std::string sweep = session.Output("sweep.measurements");
  DYNAMICCL_CHECK_OK(WriteDemoResult(session.Output("demo.json"), session.result()));
  const ReportInputs inputs{.demo = session.result(), .traces = {}, .measurements = {{sweep, swept.all}}};
  return WriteTextFile(session.Output("report.html"), RenderReport(inputs));
}

}  // namespace

Status RunDemo(DemoSession& session) {
  const DemoBudget& budget = session.plan().budget;
  double left = budget.record_s + budget.sweep_s + budget.train_s + budget.compare_s + budget.whole_s;
  session.BeginStep("whole", "whole runs that learn as they go, on fabrics that NCCL's model does not know",
                    left);
  DYNAMICCL_CHECK_OK(RunWhole(session));
  left -= budget.whole_s;
  session.BeginStep("record", "training ZeRO stages 0 to 3 on real text and recording their collectives",
                    left);
  DYNAMICCL_TRY(const RecordedRuns runs, RecordRuns(session));
  left -= budget.record_s;
  session.BeginStep("sweep", "timing every legal choice for the sizes that were used", left);
  DYNAMICCL_TRY(const SweptConfigs swept, SweepConfigs(session, runs));
  left -= budget.sweep_s;
  session.BeginStep("train", "training the shipped policy further on these recordings and times", left);
  DYNAMICCL_TRY(const std::string policy, TrainAgents(session, runs, swept));
  left -= budget.train_s;
  session.BeginStep("compare", "training again, by default and with what was learned, in turn", left);
  DYNAMICCL_TRY(const std::string rules, WriteBestRules(session, swept));
  DYNAMICCL_CHECK_OK(CompareArms(session, policy, rules));
  session.BeginStep("judge", "comparing choices, losses and recognised stages", 1);
  DYNAMICCL_CHECK_OK(JudgeChoices(session, policy, swept));
  DYNAMICCL_CHECK_OK(AddImportedSample(session));
  AddProvenance(session, swept);
  session.result().findings = FindingsOf(session.result());
  session.BeginStep("report", "writing the report", 1);
  DYNAMICCL_CHECK_OK(WriteReport(session, swept));
  session.Complete();
  return {};
}

}  // namespace dynamiccl
