// SPDX-License-Identifier: Apache-2.0
// The steps of the demo, in order. Each takes what the earlier ones left and says what it did.
#pragma once

#include <string>
#include <vector>

#include "tools/demo/demo_session.h"
#include "tools/demo/observed_sizes.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// Traces of the training shapes (for the agents) and of the held-out shape (for the sizes to sweep), stages 0
// to 3.
struct RecordedRuns {
  std::vector<std::string> training;
  std::vector<std::string> held_out;
};
Result<RecordedRuns> RecordRuns(DemoSession& session);

// Everything that was swept, and the part that the agents may see.
struct SweptConfigs {
  ObservedSizes sizes;
  std::map<Collective, std::set<SizeClass>> held_out_classes;
  MeasurementFile all;    // every topology and size
  std::string seen_path;  // without the held-out classes and the held-out topology
};
Result<SweptConfigs> SweepConfigs(DemoSession& session, const RecordedRuns& runs);

// Returns the path of the policy.
Result<std::string> TrainAgents(DemoSession& session, const RecordedRuns& runs, const SweptConfigs& swept);

// Override rules with the best config of the sweep for each (collective, size class) of the demo's topology,
// in the CSV of NCCL's example tuner. Returns the path.
Result<std::string> WriteBestRules(DemoSession& session, const SweptConfigs& swept);

// Trains the held-out shape in turn under the default, the policy and the rules; fills step times and losses.
Status CompareArms(DemoSession& session, const std::string& policy, const std::string& rules);

// Fills choices, decisions, fingerprints and recognition from the traces of CompareArms.
Status JudgeChoices(DemoSession& session, const std::string& policy, const SweptConfigs& swept);

// Label of a compared run: "compare-stage2-ours-1".
std::string CompareLabel(int stage, const std::string& arm, int round);
inline constexpr const char* kDefaultArm = "default";
inline constexpr const char* kOurArm = "ours";
inline constexpr const char* kBestArm = "best of sweep";

}  // namespace dynamiccl
