// SPDX-License-Identifier: Apache-2.0
// `dynamiccl ab`: compares settings by what they do to the training steps of one job, in which they take
// turns (docs/ab.md). The job's output is untouched; the result follows it:
//
//   2 settings in turns of 3 steps, 16 calls a step: 38 rounds, 0 turns left out
//      step ms   ratio  95 % interval     setting
//        21.63                            default
//        14.71   0.680  0.672 to 0.689    ring/simple/1: faster
//   A turn's noise is 2.4 %. Telling 0.5 % apart would take about 300 steps more.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "src/base/file_kind.h"
#include "src/base/settings.h"
#include "src/decision/rule_turns.h"
#include "tools/ab/job_in_turns.h"
#include "tools/ab/turn_comparison.h"
#include "tools/ab/turn_effects.h"
#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/explain/emulated_fabric.h"
#include "tools/launch/temporary_folder.h"
#include "tools/launch_options.h"
#include "tools/report/json_output.h"
#include "traces/format/measurement_file.h"

namespace dynamiccl {
namespace {

struct AbOptions {
  LaunchOptions launch;
  std::vector<std::string> settings;
  uint32_t turn_steps = 3;
  std::string trace;
  std::string json;
  std::string effects;
};

// Returns the fabric that the job ran on: that of the topology over hostccl, else one without known links.
Result<MeasurementContext> FabricOf(const AbOptions& given, const SectionCalls& calls) {
  MeasurementContext fabric{"unnamed", {}};
  for (const auto& [number, communicator] : calls.communicators) {
    if (communicator.n_ranks <= fabric.model.fabric.n_ranks) continue;
    fabric.model.fabric.n_ranks = communicator.n_ranks;
    fabric.model.fabric.n_nodes = communicator.n_nodes;
  }
  const std::string& topology = given.launch.runtime.topology;
  if (topology.empty()) return fabric;
  return EmulatedFabric(topology, fabric.model.fabric.n_ranks);
}

// Writes what the settings did to the steps as a measurement file.
Status WriteEffects(const AbOptions& given, const SectionCalls& calls, const TurnComparison& comparison) {
  DYNAMICCL_TRY(const MeasurementContext fabric, FabricOf(given, calls));
  const ComparedJob job{given.settings, &calls, fabric, !given.launch.runtime.policy.empty()};
  DYNAMICCL_TRY(const TurnEffects effects, EffectsOfTurns(comparison, job));
  if (effects.left_out > 0)
    spdlog::info(
        "{}: {} settings left out: they force no single config on the job's calls, or had too few rounds",
        given.effects, effects.left_out);
  return WriteMeasurementFile(given.effects, effects.file);
}

// The calls that a job's first process recorded while the settings took turns, and their comparison.
struct ComparedTurns {
  SectionCalls calls;
  TurnComparison comparison;
};

auto Interrupted(const AbOptions& given, const RecordedLaunch& recorded) {
  const bool kept = !given.trace.empty() && recorded.processes > 0;
  return WithHint(MakeError(ErrorKind::kPeerFailed, "interrupted: {}; the settings are not compared",
                            Describe(recorded.outcome)),
                  kept ? fmt::format("the calls until then are kept in {}", given.trace)
                       : "nothing is kept; with --trace FILE the calls until then would be");
}

// Runs the job with the settings taking turns, and compares them. `interrupted_by` gets the signal that ended
// the job.
Result<ComparedTurns> Compare(const CommandLine& line, const AbOptions& given, int& interrupted_by) {
  DYNAMICCL_TRY(const TemporaryFolder folder, TemporaryFolder::Create("ab"));
  const TurnsPlan plan{.settings = given.settings,
                       .turn_steps = given.turn_steps,
                       .trace = given.trace.empty() ? folder.File("ab.ctrace") : given.trace};
  DYNAMICCL_TRY(TurnsStart start, StartInTurns(given.launch, line.program(), plan));
  const RecordedLaunch& recorded = start.recorded;
  interrupted_by = recorded.outcome.interrupted_by;
  if (interrupted_by != 0) return Interrupted(given, recorded);
  if (!recorded.outcome.ok())
    return MakeError(ErrorKind::kPeerFailed, "the job failed: {}", Describe(recorded.outcome));
  if (!given.launch.quiet) spdlog::info("{}", Describe(recorded.outcome));
  if (recorded.missing.any())
    spdlog::warn("{}, so only a part of the job counts{}", Describe(recorded.missing),
                 recorded.missing.replaced > 0 ? ": set DYNAMICCL_TRACE_RECORDS higher" : "");
  if (start.calls.calls.empty()) return MakeError(ErrorKind::kUnsupported, "the job made no NCCL calls");
  DYNAMICCL_TRY(TurnComparison comparison, CompareTurns({start.calls}, given.settings, given.turn_steps));
  return ComparedTurns{std::move(start.calls), std::move(comparison)};
}

}  // namespace

Result<int> AbCommand(CommandLine& line) {
  AbOptions given;
  RegisterLaunchOptions(line.app(), given.launch);
  line.app()
      .add_option("setting", given.settings,
                  "default, a file of override rules, a config (ring/simple/1), or "
                  "allgather=ring/simple/1,allreduce=tree/ll; the others are compared with the first")
      ->required()
      ->expected(2, static_cast<int>(kMaxRuleSets));
  line.app()
      .add_option("--turn-steps", given.turn_steps, "Steps of a turn, of which the first does not count")
      ->capture_default_str()
      ->check(CLI::Range(kLeastTurnSteps, kMaxTurnSteps));
  line.app().add_option("--trace", given.trace, "Keep the trace of the job here (.ctrace)");
  line.app().add_option("--json", given.json, "Write the result as JSON to this file");
  line.app().add_option("--effects", given.effects,
                        "Write each setting's effect on a step to this file (.measurements), from which "
                        "`dynamiccl train` learns; the first setting must leave all calls to NCCL");
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_CHECK_OK(CheckOutputs({given.trace, given.json}));
  DYNAMICCL_CHECK_OK(CheckFolderOf(given.effects));
  if (!given.launch.runtime.rules.empty() || !given.launch.runtime.mode.empty())
    return MakeError(ErrorKind::kInvalidArgument, "--rules and --mode cannot be given: settings take turns");
  DYNAMICCL_CHECK_OK(CheckNothingInherited(given.launch.runtime));
  if (!given.effects.empty())
    DYNAMICCL_CHECK_OK(CheckIsNcclsChoice(given.settings.front(), !given.launch.runtime.policy.empty()));
  int interrupted_by = 0;
  Result<ComparedTurns> result = Compare(line, given, interrupted_by);
  if (!result && interrupted_by != 0) return ExitInterrupted(result.error(), interrupted_by);
  DYNAMICCL_TRY(const ComparedTurns compared, std::move(result));
  // The result is printed before any file is written, so that it is not lost if a file cannot be written.
  fmt::print("{}", Describe(compared.comparison));
  if (!given.json.empty()) DYNAMICCL_CHECK_OK(WriteJsonFile(given.json, ToJson(compared.comparison)));
  if (!given.effects.empty()) DYNAMICCL_CHECK_OK(WriteEffects(given, compared.calls, compared.comparison));
  return kExitOk;
}

}  // namespace dynamiccl
