// SPDX-License-Identifier: Apache-2.0
// The reports of one training: lines for the user, the lines among them that the policy stores, and the JSON.
#pragma once

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "agents/provenance.h"
#include "agents/train_command.h"
#include "agents/training_progress.h"

namespace dynamiccl::agents {

using Json = nlohmann::ordered_json;

// Collects the reports of one training, on one thread.
struct TrainingAccount {
  Provenance provenance;
  Json json = {{"schema", 1}};
  // Stream for lines to the user; stderr if standard output is the JSON.
  std::FILE* talk = stdout;
  // Shows on standard error how far the training is.
  ProgressLine progress = ProgressLine::OnStandardError();
  TrainingPhases phases;

  explicit TrainingAccount(const TrainSettings& settings);

  // Stores a checksum of what is learnt from.
  void Learns(const char* what, uint64_t checksum);
  // Prints a line for the user without storing it.
  void Say(const std::string& text);
  // Prints a line, stores it for the policy, and adds `fields` to the JSON. If there is a field "seconds", it
  // is printed but not stored in the policy, because equal seeds and inputs must give equal files.
  void Note(const char* what, Json fields, const std::string& text);
};

}  // namespace dynamiccl::agents
