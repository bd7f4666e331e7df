// SPDX-License-Identifier: Apache-2.0
// One run of the ZeRO trainer under the demo's launcher, with its calls recorded.
#pragma once

#include <string>
#include <vector>

#include "tools/demo/demo_session.h"

namespace dynamiccl {

struct TrainerRun {
  int stage = 0;
  TrainingShape shape;
  int steps = 0;
  std::string label;         // names the files of the run: LABEL.ctrace, logs/LABEL.jsonl
  RuntimeOptions runtime{};  // mode, policy, rules; topology, trace and hostccl are filled in
};

struct TrainedSteps {
  std::vector<double> loss;
  std::vector<std::string> loss_bits;  // exact, as hexadecimal text
  std::vector<double> step_ms;
  std::string parameters_sha256;  // after the last step
};

std::string TracePath(const DemoSession& session, const std::string& label);

Result<TrainedSteps> RunTrainer(DemoSession& session, const TrainerRun& run);

// The JSON lines that dynamiccl-zero writes with --json.
Result<TrainedSteps> ReadTrainedSteps(const std::string& path);

}  // namespace dynamiccl
