// SPDX-License-Identifier: Apache-2.0
// Builds the trainer's command line and reads its report.
#include "tools/demo/trainer_run.h"

#include <fstream>
#include <sstream>

#include "tools/record/recorded_launch.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

std::vector<std::string> TrainerCommand(const DemoSession& session, const TrainerRun& run,
                                        const std::string& json) {
  const TrainingShape& shape = run.shape;
  const auto number = [](int64_t value) { return std::to_string(value); };
  return {session.installation().zero,
          "train",
          "--stage",
          number(run.stage),
          "--steps",
          number(run.steps),
          "--layers",
          number(shape.layers),
          "--hidden",
          number(shape.hidden),
          "--heads",
          number(shape.heads),
          "--sequence",
          number(shape.sequence),
          "--batch",
          number(shape.batch),
          "--micro-steps",
          number(shape.micro_steps),
          "--bucket-bytes",
          number(shape.bucket_bytes),
          "--seed",
          number(shape.seed),
          "--data",
          session.text(),
          "--json",
          json};
}

// Reads one JSON line of the trainer's report: a training step, or the hash of the parameters at the end.
void AddLine(const Json& line, TrainedSteps& steps) {
  if (line.contains("step") && line.contains("loss")) {
    steps.loss.push_back(line.at("loss"));
    steps.loss_bits.push_back(line.at("loss_hex"));
    steps.step_ms.push_back(line.at("step_ms"));
  } else if (line.contains("parameters_sha256")) {
    steps.parameters_sha256 = line.at("parameters_sha256");
  }
}

}  // namespace

std::string TracePath(const DemoSession& session, const std::string& label) {
  return session.Output(label + ".ctrace");
}

Result<TrainedSteps> RunTrainer(DemoSession& session, const TrainerRun& run) {
  const std::string trace = TracePath(session, run.label);
  const std::string json = session.Output("logs/" + run.label + ".jsonl");
  RuntimeOptions runtime = run.runtime;
  runtime.topology = run.topology.empty() ? session.plan().topology : run.topology;
  runtime.hostccl = true;
  runtime.trace = PartPattern(trace);
  LaunchPlan plan{.command = TrainerCommand(session, run, json),
                  .n_ranks = run.n_ranks > 0 ? run.n_ranks : session.plan().n_ranks};
  DYNAMICCL_TRY(plan.environment, RuntimeEnvironment(session.installation(), runtime));
  for (const auto& [name, value] : run.environment) plan.environment[name] = value;
  std::vector<std::string> outputs{json};
  if (!run.runtime.site_store.empty()) outputs.push_back(run.runtime.site_store);
  DYNAMICCL_CHECK_OK(session.Run(
      {.label = run.label, .plan = std::move(plan), .trace = trace, .outputs = std::move(outputs)}));
  return ReadTrainedSteps(json);
}

Result<TrainedSteps> ReadTrainedSteps(const std::string& path) {
  DYNAMICCL_TRY(const std::string text, ReadTextFile(path));
  TrainedSteps steps;
  std::istringstream lines(text);
  try {
    for (std::string line; std::getline(lines, line);) AddLine(Json::parse(line), steps);
  } catch (const Json::exception& error) {
    return MakeError(ErrorKind::kCorrupt, "{}: {}", path, error.what());
  }
  if (steps.loss.empty()) return MakeError(ErrorKind::kCorrupt, "{}: the trainer reported no step", path);
  return steps;
}

}  // namespace dynamiccl
