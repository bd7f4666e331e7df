// SPDX-License-Identifier: Apache-2.0
#include "agents/training_account.h"

#include <fmt/core.h>
#include <torch/version.h>

#include <utility>

#include "agents/config/boosted_trees.h"
#include "agents/json_result.h"

namespace dynamiccl::agents {
namespace {

// The name of the program in the policy's provenance.
constexpr char kProgram[] = "dynamiccl-agents train";

// The number of phases that the progress line shows. Without --from: structure agent, config agent, trees if
// this build has XGBoost, and the check. With --from: the config agent, and with traces the structure agent
// and its check.
int PhasesOf(const TrainSettings& settings) {
  if (!settings.from.empty()) return settings.traces.empty() ? 1 : 3;
  return CanTrainTrees() ? 4 : 3;
}

std::string LibrariesOfTrainings() {
  return fmt::format("LibTorch {}, {}", TORCH_VERSION, TreeLibrary());
}

}  // namespace

TrainingAccount::TrainingAccount(const TrainSettings& settings)
    : provenance{.program = kProgram,
                 .seed = settings.seed,
                 .hold_out = settings.hold_out,
                 .inputs = {},
                 .notes = {},
                 .libraries = LibrariesOfTrainings()},
      talk(JsonIsTheOutput(settings.json) ? stderr : stdout),
      phases(progress, PhasesOf(settings)) {}

void TrainingAccount::Learns(const char* what, uint64_t checksum) {
  provenance.learnt.push_back(fmt::format("{} {:016x}", what, checksum));
  json["learnt"][what] = fmt::format("{:016x}", checksum);
}

void TrainingAccount::Say(const std::string& text) {
  progress.Clear();
  fmt::print(talk, "{}\n", text);
  std::fflush(talk);
}

void TrainingAccount::Note(const char* what, Json fields, const std::string& text) {
  const bool timed = fields.contains("seconds");
  Say(timed ? fmt::format("{}, {:.1f} s", text, fields["seconds"].get<double>()) : text);
  provenance.notes.push_back(text);
  json[what] = std::move(fields);
}

}  // namespace dynamiccl::agents
