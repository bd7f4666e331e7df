// SPDX-License-Identifier: Apache-2.0
// The steps of the demo, in order. Each takes what the earlier ones left in the session and on disk.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/collective/collective.h"
#include "src/collective/size_class.h"
#include "src/policy/policy.h"
#include "tools/demo/demo_session.h"
#include "tools/report/demo_result.h"
#include "traces/format/measurement.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

// The sizes that the demo sweeps: for each size class that occurred in the training runs, one size in bytes.
using ObservedSizes = std::map<Collective, std::map<SizeClass, uint64_t>>;

// Reads the traces in the given order; the first size seen in a class represents it. At most `limit` classes
// of a collective are kept: those that carry the most bytes, and always the smallest and largest.
Result<ObservedSizes> ObserveSizes(const std::vector<std::string>& traces, size_t limit);

// Selects every third class of each collective, but never the smallest or the largest: held-out sizes lie
// between sizes that the agents saw.
std::map<Collective, std::set<SizeClass>> HeldOutClasses(const ObservedSizes& sizes);

// Paths of traces of stages 0 to 3: of the training shapes, for the agents, and of the held-out shape, for
// the sizes to sweep.
struct RecordedRuns {
  std::vector<std::string> training;
  // Paths of traces by stage.
  std::vector<std::string> held_out;
};
// Trains every shape and stage and records the calls.
Result<RecordedRuns> RecordRuns(DemoSession& session);

// Everything that was swept, and the part that the agents may see.
struct SweptConfigs {
  ObservedSizes sizes;
  std::map<Collective, std::set<SizeClass>> held_out_classes;
  // The measurements of every topology and size.
  MeasurementFile all;
  // File without the held-out classes and the held-out topology.
  std::string seen_path;
};
// Times every legal config for the sizes that the traces show.
Result<SweptConfigs> SweepConfigs(DemoSession& session, const RecordedRuns& runs);

// Trains both agents; returns the path of the policy.
Result<std::string> TrainAgents(DemoSession& session, const RecordedRuns& runs, const SweptConfigs& swept);

// Writes override rules with the sweep's best config for each (collective, size class) of the demo's
// topology, in the CSV of NCCL's example tuner. Returns the path.
Result<std::string> WriteBestRules(DemoSession& session, const SweptConfigs& swept);

// Trains the held-out shape by default and under the policy, and then with default, policy and rules taking
// turns of a few steps. Fills losses and step times.
Status CompareArms(DemoSession& session, const std::string& policy, const std::string& rules);

// Fills choices, decisions, fingerprints and recognition from the traces of CompareArms.
Status JudgeChoices(DemoSession& session, const std::string& policy, const SweptConfigs& swept);

// Runs the trainer for hundreds of steps in mode adaptive and, for comparison, by default, on fabrics that
// NCCL's cost model does and does not know. Fills whole_runs.
Status RunWhole(DemoSession& session);

// Label of a compared run: "compare-stage2-ours".
std::string CompareLabel(int stage, const std::string& arm);
// Names of the arms in files and reports.
inline constexpr const char* kDefaultArm = "default";
inline constexpr const char* kOurArm = "ours";
inline constexpr const char* kBestArm = "best of sweep";

// Fills result().imported, the public trace of another job that the report shows beside the demo's own, from
// the first sample in traces/samples. Changes nothing where the installation has no samples.
Status AddImportedSample(DemoSession& session);

// Counts the calls of a recorded run by the stage that the structure agent recognised after each: index 0 to
// 3 for the stages, 4 for unknown. The agent sees only the calls, as in a job.
std::vector<int64_t> RecogniseStages(const Policy& policy, const SectionCalls& section);

// Returns the result of a demo as sentences: where the policy won, where it lost and where nothing could be
// won, with the noise.
std::vector<std::string> FindingsOf(const DemoResult& result);

}  // namespace dynamiccl
