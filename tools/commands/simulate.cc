// SPDX-License-Identifier: Apache-2.0
// `dynamiccl simulate`: the time of a trace or of a framework's step on a system
// (docs/simulate.md). Exposed communication is what rank 0 waits for, so that the three parts of the second
// line add up to the first number:
//
//   # 64 ranks on dgx-h100: 10.308 ms until the last rank is done; rank 0:
//   10.308 ms = 3.314 ms computing + 6.994 ms exposed communication + 0.000 ms other
//   role               collective       calls        bytes   running ms   exposed ms
//   parameter_gather   AllGather           25      946.67M        5.751        5.965
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>

#include "src/collective/legal_configs.h"
#include "tools/command_table.h"
#include "tools/commands/given_traces.h"
#include "tools/exit_code.h"
#include "tools/launch/installation.h"
#include "tools/report/json_output.h"
#include "tools/report/recognised_labels.h"
#include "tools/simulate/described_system.h"
#include "tools/simulate/scaling.h"
#include "tools/simulate/trace_program.h"

namespace dynamiccl {
namespace {

// Value of Subject::computing for a trace without times when the user does not state the computing time
// either.
constexpr char kUnknownComputing[] = "unknown";

struct SimulateOptions {
  std::vector<std::string> inputs;
  std::string system = "dgx-h100";
  std::string framework, model = "gpt", settings, accelerator, algorithm, policy;
  FrameworkStep step;
  int32_t ranks = 0;
  double compute_ms = 0;
  bool scaling = false;
  bool json = false;
  std::vector<std::string> stragglers, loads;
  double jitter = 0;
  uint64_t seed = 1;
};

// The job to simulate, with what is needed to show its result.
struct Subject {
  SimulatedJob job;
  std::vector<CollectiveLabel> labels;
  // The replay plans by rank when a trace is simulated.
  std::vector<ReplayPlan> plans;
  // Origin of the computing times: "modelled", "measured", "stated" or "unknown".
  std::string computing = "modelled";
  // Text about the error of the system's times; empty where the system's file does not state it.
  std::string error;
  // Says who recognised the roles of a trace; empty where the program labelled them, or nobody did.
  std::string recognised_by;
};

Result<Accelerator> TakeAccelerator(const std::string& name) {
  if (const Accelerator* const found = FindAccelerator(name)) return *found;
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "--accelerator: there is no '{}'", name),
                  "v100, a100 or h100; or state --forward-ms");
}

Result<CollectiveConfig> TakeAlgorithm(const std::string& text) {
  if (text.empty()) return kLeaveNcclAlone;
  if (const auto config = ParseConfig(text)) return *config;
  if (const auto algorithm = ParseAlgorithm(text))
    return CollectiveConfig{*algorithm, Protocol::kUndefined, 0};
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument, "--algorithm: not an algorithm or config: '{}'", text),
      "Ring, Tree or PAT, or a config like Ring/LL128");
}

// Parses the values of --straggler. "RANK:FACTOR" multiplies the rank's computing time; with "RANK:+MS" the
// rank begins that many milliseconds late.
Status TakeStragglers(const SimulateOptions& given, SimulatedJob& job) {
  for (const std::string& text : given.stragglers) {
    Straggler straggler;
    double value = 0;
    char plus = 0;
    int end = 0;
    if (std::sscanf(text.c_str(), "%d:%c%lf%n", &straggler.rank, &plus, &value, &end) == 3 && plus == '+' &&
        text[end] == '\0') {
      straggler.late_ns = static_cast<int64_t>(value * 1e6);
    } else if (std::sscanf(text.c_str(), "%d:%lf%n", &straggler.rank, &value, &end) == 2 &&
               text[end] == '\0') {
      straggler.compute_factor = value;
    } else {
      return WithHint(MakeError(ErrorKind::kInvalidArgument, "--straggler {}: not understood", text),
                      "rank 3 computes half as fast: 3:2; begins 5 ms late: 3:+5");
    }
    job.stragglers.push_back(straggler);
  }
  return {};
}

// Parses the values of --load, the share of the network that other traffic takes: "SHARE" on every node or
// "NODE:SHARE" on one node, each optionally with "@FROM_MS-UNTIL_MS".
Status TakeLoads(const SimulateOptions& given, SimulatedJob& job) {
  for (const std::string& text : given.loads) {
    NetworkLoad load;
    const size_t at = text.find('@');
    const std::string what = text.substr(0, at);
    double from = 0, until = 0;
    int end = 0;
    bool right = std::sscanf(what.c_str(), "%d:%lf%n", &load.node, &load.share, &end) == 2;
    if (!right) {
      load.node = -1;
      right =
          what.find(':') == std::string::npos && std::sscanf(what.c_str(), "%lf%n", &load.share, &end) == 1;
    }
    // Text after the number is an error: of "0,5" only the 0 would be read.
    right = right && what[end] == '\0';
    if (right && at != std::string::npos) {
      const char* const times = text.c_str() + at;
      right = std::sscanf(times, "@%lf-%lf%n", &from, &until, &end) == 2 && times[end] == '\0';
      load.from_ns = static_cast<int64_t>(from * 1e6);
      load.until_ns = static_cast<int64_t>(until * 1e6);
    }
    if (!right) {
      return WithHint(MakeError(ErrorKind::kInvalidArgument, "--load {}: not understood", text),
                      "half of every node's network: 0.5; of node 2 from 10 to 20 ms: 2:0.5@10-20");
    }
    job.loads.push_back(load);
  }
  return {};
}

Json SimulateJson(const RankTiming& rank, const std::vector<SummaryRow>& rows) {
  Json table = Json::array();
  for (const SummaryRow& row : rows) {
    table.push_back({{"role", Name(row.role)},
                     {"collective", Name(row.collective)},
                     {"calls", row.calls},
                     {"bytes", row.bytes},
                     {"running_ns", row.running_ns},
                     {"exposed_ns", row.exposed_ns}});
  }
  return {{"finished_ns", rank.finished_ns},
          {"compute_ns", rank.compute_ns},
          {"exposed_ns", rank.stalled_ns},
          {"rows", table}};
}

// The times between which the job ends if all its collectives are as much faster or slower as nine of ten
// measured times were. `unknown` says why there are none.
struct FinishInterval {
  int64_t low_ns = 0, high_ns = 0;
  std::string unknown;
};

void PrintInterval(const FinishInterval& interval) {
  if (!interval.unknown.empty()) {
    fmt::print("# no interval: {}\n", interval.unknown);
    return;
  }
  fmt::print("# {:.3f} to {:.3f} ms if every collective is at one end of its 90 % interval\n",
             static_cast<double>(interval.low_ns) * 1e-6, static_cast<double>(interval.high_ns) * 1e-6);
}

Json IntervalJson(const FinishInterval& interval) {
  if (!interval.unknown.empty()) return {{"unknown", interval.unknown}};
  return {{"low_ns", interval.low_ns}, {"high_ns", interval.high_ns}};
}

// Simulates the job and prints how rank 0 spends its time.
Result<int> ShowSimulate(const Subject& subject, const SimulateOptions& given,
                         const FinishInterval& interval) {
  DYNAMICCL_TRY(const SimulationResult result, Simulate(subject.job));
  const RankTiming& rank = result.observed[0];
  const std::vector<SummaryRow> rows = Summarize(rank, subject.labels);
  const std::string operations =
      subject.plans.empty() ? ""
                            : fmt::format("{:016x}", OperationHash(SimulatedCalls(subject.plans[0], rank)));
  if (given.json) {
    Json json = {{"schema", 1},
                 {"system", given.system},
                 {"ranks", subject.job.n_ranks},
                 {"rank_classes", result.rank_classes},
                 {"collectives", result.collectives},
                 {"finished_ns", result.finished_ns},
                 {"finished_interval", IntervalJson(interval)},
                 {"computing", subject.computing},
                 {"rank_0", SimulateJson(rank, rows)}};
    if (!operations.empty()) json["operations"] = operations;
    if (!subject.recognised_by.empty()) json["recognised_by"] = subject.recognised_by;
    PrintJson(json);
    return kExitOk;
  }
  fmt::print("# {} ranks on {}: {:.3f} ms until the last rank is done; rank 0:\n", subject.job.n_ranks,
             given.system, static_cast<double>(result.finished_ns) * 1e-6);
  fmt::print("{}", FormatSummary(rank, rows));
  if (!subject.recognised_by.empty()) fmt::print("# roles as {} recognises them\n", subject.recognised_by);
  if (!subject.error.empty()) fmt::print("# {}\n", subject.error);
  PrintInterval(interval);
  if (subject.computing == kUnknownComputing)
    fmt::print(
        "# communication alone: the trace does not tell what is computed; state it with --compute-ms\n");
  if (!operations.empty()) fmt::print("# operations {}\n", operations);
  return kExitOk;
}

// Returns a text such as "times of this system are off by 6.6 to 12.8 % (medians ...)"; empty if the system's
// file states no errors.
std::string DescribeErrors(const System& system) {
  if (system.errors.empty()) return "";
  const auto [least, most] =
      std::ranges::minmax_element(system.errors, {}, [](const StatedError& error) { return error.median; });
  return fmt::format(
      "times of this system are off by {:.1f} to {:.1f} % (medians by collective, on rank counts that a fit "
      "did "
      "not see)",
      100 * least->median, 100 * most->median);
}

// The recorded trace, if one is simulated. `recognised_by` says who recognised its roles.
struct TakenTrace {
  Trace trace;
  std::string recognised_by;
};

Result<TakenTrace> TakeTrace(const SimulateOptions& given) {
  TakenTrace taken;
  if (given.inputs.empty()) return taken;
  DYNAMICCL_TRY(taken.trace, ReadGivenTraces(given.inputs));
  DYNAMICCL_TRY(taken.recognised_by, RecogniseSections(given.policy, ShippedPolicy(), taken.trace));
  if (given.compute_ms > 0 && !taken.trace.order_only()) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "--compute-ms: the trace has measured times, which tell what was computed"),
                    "leave it out");
  }
  return taken;
}

// True if no two ranks are in one communicator of the recorded calls.
bool EveryRankIsAlone(const TraceJob& job) {
  return job.job.n_ranks > 1 && std::ranges::all_of(job.plans, [](const ReplayPlan& plan) {
           return std::ranges::all_of(plan.groups, [&](const ReplayGroup& group) {
             return plan.communicators[group.communicator].n_ranks == 1;
           });
         });
}

// Says what the conversion of the trace left out or assumed.
void SayNotes(const TraceJob& job) {
  if (EveryRankIsAlone(job))
    spdlog::warn("every communicator of the trace has one rank: its collectives take no time on {} ranks",
                 job.job.n_ranks);
  for (const std::string& note : job.plans[0].notes) spdlog::info("{}", note);
  if (job.untimed > 0)
    spdlog::info("{} calls have no recorded duration: none is taken to have been waited for before the end",
                 job.untimed);
}

Result<Subject> SubjectOfTrace(const SimulateOptions& given, const System& system, const TakenTrace& taken) {
  const TraceJobOptions options{.ranks = given.ranks,
                                .compute_ns = std::llround(given.compute_ms * 1e6),
                                .config = [&](const CallOnSystem&) { return given.step.config; }};
  DYNAMICCL_TRY(TraceJob job, JobOfTrace(taken.trace, system, options));
  if (system.part == IntervalPart::kPrediction) SayNotes(job);
  const char* const stated = given.compute_ms > 0 ? "stated" : kUnknownComputing;
  return Subject{std::move(job.job),
                 std::move(job.labels[0]),
                 std::move(job.plans),
                 job.order_only ? stated : "measured",
                 {},
                 taken.recognised_by};
}

Result<int> Scaling(const FrameworkStep& step, const System& system, bool json) {
  DYNAMICCL_TRY(const std::vector<ScalingPoint> points, ScaleOut(step, system));
  if (!json) {
    fmt::print("{}", FormatScaling(points));
    return kExitOk;
  }
  Json rows = Json::array();
  for (const ScalingPoint& point : points)
    rows.push_back({{"arrangement", point.arrangement},
                    {"ranks", point.ranks},
                    {"step_ns", point.step_ns},
                    {"exposed_ns", point.exposed_ns}});
  PrintJson({{"schema", 1}, {"system", system.name}, {"rows", rows}});
  return kExitOk;
}

Status TakeStep(SimulateOptions& given) {
  DYNAMICCL_TRY(given.step.model, ParseModel(given.model));
  DYNAMICCL_TRY(given.step.settings, ParseSettingTexts(given.settings, "--set"));
  DYNAMICCL_TRY(given.step.accelerator,
                TakeAccelerator(given.accelerator.empty() ? "h100" : given.accelerator));
  given.step.framework = given.framework;
  return {};
}

// The job on this system, with stragglers, loads and jitter.
Result<Subject> SubjectOn(const System& system, const SimulateOptions& given, const TakenTrace& taken) {
  Subject subject;
  if (!given.framework.empty()) {
    DYNAMICCL_TRY(FrameworkJob job, JobOfFramework(given.step, system));
    subject = {std::move(job.job), std::move(job.labels), {}, "modelled", {}, {}};
  } else {
    DYNAMICCL_TRY(subject, SubjectOfTrace(given, system, taken));
    if (given.step.network_gbps > 0) subject.job.network_gbps = given.step.network_gbps;
  }
  DYNAMICCL_CHECK_OK(TakeStragglers(given, subject.job));
  DYNAMICCL_CHECK_OK(TakeLoads(given, subject.job));
  subject.error = DescribeErrors(system);
  subject.job.compute_jitter = given.jitter;
  subject.job.seed = given.seed;
  return subject;
}

// Simulates the job twice more, at both ends of the intervals of its collectives.
Result<FinishInterval> IntervalOn(System system, const SimulateOptions& given, const TakenTrace& taken) {
  if (system.intervals.empty())
    return FinishInterval{.unknown = fmt::format("no errors are stated for {}", system.name)};
  FinishInterval interval;
  for (const auto& [part, finished] :
       {std::pair(IntervalPart::kShortest, &interval.low_ns), {IntervalPart::kLongest, &interval.high_ns}}) {
    system.part = part;
    const auto subject = SubjectOn(system, given, taken);
    if (!subject && subject.error().kind == ErrorKind::kUnsupported)
      return FinishInterval{.unknown = subject.error().message};
    if (!subject) return tl::unexpected<Error>(subject.error());
    DYNAMICCL_TRY(const SimulationResult result, Simulate(subject->job));
    *finished = result.finished_ns;
  }
  return interval;
}

Result<int> RunSimulate(SimulateOptions& given) {
  const DescribedSystem* const described = FindDescribedSystem(given.system);
  DYNAMICCL_TRY(const System system, SystemNamed(given.system));
  DYNAMICCL_TRY(given.step.config, TakeAlgorithm(given.algorithm));
  if (given.step.network_gbps == 0 && described != nullptr) given.step.network_gbps = described->network_gbps;
  if (!given.framework.empty()) {
    DYNAMICCL_CHECK_OK(TakeStep(given));
    if (given.scaling) return Scaling(given.step, system, given.json);
  } else if (given.inputs.empty()) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "nothing to simulate"),
        "give a trace (dynamiccl simulate job.ctrace), or --framework for a job that need not exist");
  }
  DYNAMICCL_TRY(const TakenTrace taken, TakeTrace(given));
  DYNAMICCL_TRY(const Subject subject, SubjectOn(system, given, taken));
  DYNAMICCL_TRY(const FinishInterval interval, IntervalOn(system, given, taken));
  return ShowSimulate(subject, given, interval);
}

void RegisterStep(CLI::App& app, SimulateOptions& given) {
  app.add_option("--framework", given.framework,
                 "A step of this framework instead of a trace (see trace generate --explain)");
  app.add_option("--model", given.model, "Preset with settings, gpt:layers=4,hidden=256 (default: gpt)");
  app.add_option("--data-parallel", given.step.world.data, "Data-parallel ranks (default: 2)");
  app.add_option("--tensor-parallel", given.step.world.tensor, "Tensor-parallel ranks (default: 1)");
  app.add_option("--shard-group", given.step.world.shard,
                 "Hybrid sharding: ranks that share one copy (default: all)");
  app.add_option("--set", given.settings,
                 "Settings of the framework: param_dtype=bfloat16,reduce_dtype=float32");
  app.add_option("--sequences", given.step.sequences, "Of a rank, in each pass (default: 1)")
      ->check(CLI::Range(1, 1 << 20));
  app.add_flag("--recompute", given.step.recomputes, "The backward computes the forward once more");
  app.add_option("--forward-ms", given.step.forward_ms,
                 "What a forward computes, instead of the accelerator's model")
      ->check(CLI::PositiveNumber);
  app.add_option("--accelerator", given.accelerator, "v100, a100 or h100 (default: h100)");
  app.add_flag("--scaling", given.scaling,
               "The framework's step on 8 to 4096 ranks: Ring, PAT, Tree, hybrid sharding");
}

void RegisterSimulateOptions(CLI::App& app, SimulateOptions& given) {
  CLI::Option* const inputs =
      app.add_option("trace", given.inputs, "Recorded traces; those of several ranks are taken together")
          ->check(CLI::ExistingFile);
  app.add_option("--system", given.system,
                 "System file (of `dynamiccl calibrate`: with intervals), or one of " +
                     DescribedSystemNames() + " (default: dgx-h100)");
  app.add_option("--network-gbps", given.step.network_gbps, "Of a node, all its links to others together")
      ->check(CLI::PositiveNumber);
  RegisterStep(app, given);
  app.get_option("--framework")->excludes(inputs);
  app.add_option("-n,--ranks", given.ranks, "Of a trace of one rank, which is mirrored (default: as it says)")
      ->check(CLI::Range(1, 32767));
  app.add_option(
         "--policy", given.policy,
         "Policy whose LSTM recognises the calls of a trace without labels (default: the job's own, else the "
         "shipped one)")
      ->check(CLI::ExistingFile);
  app.add_option("--compute-ms", given.compute_ms,
                 "What a rank computes in a trace without measured times, evenly between its calls")
      ->check(CLI::PositiveNumber);
  app.add_option("--algorithm", given.algorithm,
                 "Of every collective that has it: Ring, PAT, Tree, Ring/LL128 (default: the cheapest)");
  app.add_option("--straggler", given.stragglers,
                 "RANK:FACTOR computes slower, RANK:+MS begins late; repeatable");
  app.add_option("--load", given.loads,
                 "Share of the network that strangers take: 0.5, NODE:0.5, 0.5@FROM_MS-UNTIL_MS; repeatable");
  app.add_option("--jitter", given.jitter, "Every computation takes longer by up to this share")
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--seed", given.seed, "Of the jitter (default: 1)");
  app.get_option("--scaling")->needs("--framework");
  app.add_flag("--json", given.json, "Write JSON instead of tables");
}

}  // namespace

Result<int> SimulateCommand(CommandLine& line) {
  SimulateOptions given;
  RegisterSimulateOptions(line.app(), given);
  if (const auto exit_code = line.Parse()) return *exit_code;
  return RunSimulate(given);
}

}  // namespace dynamiccl
