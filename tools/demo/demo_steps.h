// SPDX-License-Identifier: Apache-2.0
// The steps of the demo, in order. Each step uses what the earlier ones left in the session and on disk.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
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

// Reads the sizes of the calls in these traces, in the given order. The first size seen in a size class
// represents the class. At most `limit` classes of a collective are kept: the smallest, the largest, and
// those with the most bytes.
Result<ObservedSizes> ObserveSizes(const std::vector<std::string>& traces, size_t limit);

// Selects the size classes whose measurements the agents must not see (held out): every third of each
// collective, but never the smallest or the largest, so that held-out sizes lie between sizes that the agents
// saw.
std::map<Collective, std::set<SizeClass>> HeldOutClasses(const ObservedSizes& sizes);

// Paths of the traces of ZeRO stages 0 to 3. The agents are trained on the traces of the training shapes. The
// traces of the held-out shape (model and batch) show which sizes to sweep.
struct RecordedRuns {
  std::vector<std::string> training;
  // Paths of the traces of the held-out shape, indexed by ZeRO stage.
  std::vector<std::string> held_out;
};
// Trains every shape (model and batch) in every ZeRO stage and records the calls.
Result<RecordedRuns> RecordRuns(DemoSession& session);

// Everything that the sweep measured, and the part that the agents may see.
struct SweptConfigs {
  ObservedSizes sizes;
  std::map<Collective, std::set<SizeClass>> held_out_classes;
  // The measurements of every topology and size.
  MeasurementFile all;
  // Path of the measurement file without the held-out size classes and topology.
  std::string seen_path;
};
// Times every legal config for the sizes that occur in the traces.
Result<SweptConfigs> SweepConfigs(DemoSession& session, const RecordedRuns& runs);

// Trains both agents; returns the path of the policy.
Result<std::string> TrainAgents(DemoSession& session, const RecordedRuns& runs, const SweptConfigs& swept);

// Writes override rules with the sweep's best config for each (collective, size class) of the demo's
// topology, in the CSV of NCCL's example tuner. Returns the path.
Result<std::string> WriteBestRules(DemoSession& session, const SweptConfigs& swept);

// Trains the held-out shape (model and batch) by default and under the policy, and compares the losses. Then
// compares step times of three settings, called arms, that alternate every few steps of one job: default,
// policy and `rules`.
Status CompareArms(DemoSession& session, const std::string& policy, const std::string& rules);

// Fills in what the result says of choices, decisions, calls per step and recognised stages, from the traces
// of CompareArms.
Status JudgeChoices(DemoSession& session, const std::string& policy, const SweptConfigs& swept);

// Runs the trainer for hundreds of steps in mode adaptive and, for comparison, by default. The fabrics are
// one that NCCL's cost model describes correctly and others that it does not. Fills in whole_runs.
Status RunWhole(DemoSession& session);

// Label of a run that CompareArms makes, such as "compare-stage2-ours".
std::string CompareLabel(int stage, const std::string& arm);
// Names of the three compared settings (arms) in files and reports.
inline constexpr const char* kDefaultArm = "default";
inline constexpr const char* kOurArm = "ours";
inline constexpr const char* kBestArm = "best of sweep";

// Fills in result().imported from the first sample in traces/samples: a public trace of another job, which
// the report shows beside the demo's own. Does nothing if the installation has no samples.
Status AddImportedSample(DemoSession& session);

// Counts the calls of a recorded run by the ZeRO stage that the structure agent recognised after each call.
// Index 0 to 3 are the stages, index 4 is unknown. The agent sees only the calls, as in a job.
std::vector<int64_t> RecogniseStages(const Policy& policy, const SectionCalls& section);

// Returns a sentence that compares the step times of four runs on this fabric: two with NCCL's default, whose
// difference is the noise, one in mode adaptive, and one with one channel for all calls. Nothing if one of
// the runs is missing.
std::optional<std::string> FindingOfFabric(const DemoResult& result, const std::string& fabric);

// Returns the result of a demo as sentences: where the policy was faster than NCCL's default, where it was
// slower, where nothing could be gained, and how large the noise is.
std::vector<std::string> FindingsOf(const DemoResult& result);

}  // namespace dynamiccl
