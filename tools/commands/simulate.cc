// SPDX-License-Identifier: Apache-2.0
// `dynamiccl simulate`: the time of a trace, of a framework's step, or of the ZeRO paper's runs, on a system.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "src/collective/legal_configs.h"
#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/report/json_output.h"
#include "tools/simulate/described_system.h"
#include "tools/simulate/scaling.h"
#include "tools/simulate/trace_program.h"
#include "tools/simulate/zero_paper_figures.h"
#include "traces/format/trace_files.h"

namespace dynamiccl {
namespace {

struct Words {
  std::vector<std::string> inputs;
  std::string system;
  std::string framework, model = "gpt", settings, accelerator, algorithm, paper;
  FrameworkStep step;
  int32_t ranks = 0;
  bool scaling = false;
  bool json = false;
  std::vector<std::string> stragglers, loads;
  double jitter = 0;
  uint64_t seed = 1;
};

// What is simulated, and whose time is shown.
struct Subject {
  SimulatedJob job;
  std::vector<CollectiveLabel> labels;
  std::vector<ReplayPlan> plans;  // of a trace
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

// "RANK:FACTOR", "RANK:+MS".
Status TakeStragglers(const Words& words, SimulatedJob& job) {
  for (const std::string& text : words.stragglers) {
    Straggler straggler;
    double value = 0;
    char plus = 0;
    if (std::sscanf(text.c_str(), "%d:%c%lf", &straggler.rank, &plus, &value) == 3 && plus == '+') {
      straggler.late_ns = static_cast<int64_t>(value * 1e6);
    } else if (std::sscanf(text.c_str(), "%d:%lf", &straggler.rank, &value) == 2) {
      straggler.compute_factor = value;
    } else {
      return WithHint(MakeError(ErrorKind::kInvalidArgument, "--straggler {}: not understood", text),
                      "rank 3 computes half as fast: 3:2; begins 5 ms late: 3:+5");
    }
    job.stragglers.push_back(straggler);
  }
  return {};
}

// "SHARE", "NODE:SHARE", each with "@FROM_MS-UNTIL_MS".
Status TakeLoads(const Words& words, SimulatedJob& job) {
  for (const std::string& text : words.loads) {
    NetworkLoad load;
    const size_t at = text.find('@');
    const std::string what = text.substr(0, at);
    double from = 0, until = 0;
    bool right = std::sscanf(what.c_str(), "%d:%lf", &load.node, &load.share) == 2;
    if (!right) {
      load.node = -1;
      right = what.find(':') == std::string::npos && std::sscanf(what.c_str(), "%lf", &load.share) == 1;
    }
    if (right && at != std::string::npos) {
      right = std::sscanf(text.c_str() + at, "@%lf-%lf", &from, &until) == 2;
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

Json ToJson(const RankTiming& rank, const std::vector<SummaryRow>& rows) {
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

Result<int> Show(const Subject& subject, const Words& words) {
  DYNAMICCL_TRY(const SimulationResult result, Simulate(subject.job));
  const RankTiming& rank = result.observed[0];
  const std::vector<SummaryRow> rows = Summarize(rank, subject.labels);
  const std::string operations =
      subject.plans.empty() ? ""
                            : fmt::format("{:016x}", OperationHash(SimulatedCalls(subject.plans[0], rank)));
  if (words.json) {
    Json json = {{"schema", 1},
                 {"system", words.system},
                 {"ranks", subject.job.n_ranks},
                 {"rank_classes", result.rank_classes},
                 {"collectives", result.collectives},
                 {"finished_ns", result.finished_ns},
                 {"rank_0", ToJson(rank, rows)}};
    if (!operations.empty()) json["operations"] = operations;
    PrintJson(json);
    return kExitOk;
  }
  fmt::print("# {} ranks on {}: {:.3f} ms until the last rank is done; rank 0:\n", subject.job.n_ranks,
             words.system, static_cast<double>(result.finished_ns) * 1e-6);
  fmt::print("{}", FormatSummary(rank, rows));
  if (!operations.empty()) fmt::print("# operations {}\n", operations);
  return kExitOk;
}

Result<Subject> SubjectOfTrace(const Words& words, const System& system, const CollectiveConfig& config) {
  DYNAMICCL_TRY(const Trace trace, ReadTraceFiles(words.inputs));
  const TraceJobOptions options{.ranks = words.ranks, .config = [&](const CallOnSystem&) { return config; }};
  DYNAMICCL_TRY(TraceJob job, JobOfTrace(trace, system, options));
  for (const std::string& note : job.plans[0].notes) spdlog::info("{}", note);
  if (job.untimed > 0)
    spdlog::info("{} calls have no recorded duration: none is taken to have been waited for before the end",
                 job.untimed);
  return Subject{std::move(job.job), std::move(job.labels[0]), std::move(job.plans)};
}

Json ToJson(const SimulatedFigure& figure) {
  Json points = Json::array(), claims = Json::array();
  for (const PaperPoint& point : figure.points) {
    Json one = {{"what", point.what}, {"value", point.value}, {"unit", point.unit}};
    one["printed"] = point.printed ? Json(*point.printed) : Json(nullptr);
    one["error"] = point.printed ? Json(*point.Error()) : Json(nullptr);
    if (point.step) {
      one["step_ns"] = point.step->step_ns;
      one["exposed_tensor_ns"] = point.step->exposed_tensor_ns;
      one["exposed_data_ns"] = point.step->exposed_data_ns;
      one["memory_bytes"] = point.step->memory_bytes;
      one["fits"] = point.step->fits;
    }
    points.push_back(std::move(one));
  }
  for (const PaperClaim& claim : figure.claims)
    claims.push_back({{"text", claim.text}, {"holds", claim.holds}});
  return {{"figure", figure.figure}, {"title", figure.title}, {"points", points}, {"claims", claims}};
}

Result<int> Paper(const Words& words) {
  const std::string name = words.accelerator.empty() ? "v100" : words.accelerator;
  DYNAMICCL_TRY(const Accelerator accelerator, TakeAccelerator(name));
  const DescribedSystem* const described = FindDescribedSystem(words.system);
  if (described == nullptr)
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--paper needs a described system"),
                    DescribedSystemNames());
  Json figures = Json::array();
  for (int number = 2; number <= 8; ++number) {
    if (words.paper != "all" && words.paper != fmt::format("fig{}", number)) continue;
    DYNAMICCL_TRY(const SimulatedFigure figure, SimulateFigure(number, *described, accelerator));
    if (!words.json) fmt::print("{}\n", FormatFigure(figure));
    figures.push_back(ToJson(figure));
  }
  if (figures.empty())
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--paper {}: no such figure", words.paper),
                    "fig2 to fig8, or all");
  if (words.json) PrintJson({{"schema", 1}, {"system", described->name}, {"figures", figures}});
  return kExitOk;
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

Status TakeStep(Words& words) {
  DYNAMICCL_TRY(words.step.model, ParseModel(words.model));
  DYNAMICCL_TRY(words.step.settings, ParseSettingTexts(words.settings, "--set"));
  DYNAMICCL_TRY(words.step.accelerator,
                TakeAccelerator(words.accelerator.empty() ? "h100" : words.accelerator));
  words.step.framework = words.framework;
  return {};
}

Result<int> Run(Words& words) {
  if (words.system.empty()) words.system = words.paper.empty() ? "dgx-h100" : "dgx2";
  if (!words.paper.empty()) return Paper(words);
  const DescribedSystem* const described = FindDescribedSystem(words.system);
  DYNAMICCL_TRY(const System system, SystemNamed(words.system));
  DYNAMICCL_TRY(words.step.config, TakeAlgorithm(words.algorithm));
  if (words.step.network_gbps == 0 && described != nullptr) words.step.network_gbps = described->network_gbps;
  Subject subject;
  if (!words.framework.empty()) {
    DYNAMICCL_CHECK_OK(TakeStep(words));
    if (words.scaling) return Scaling(words.step, system, words.json);
    DYNAMICCL_TRY(FrameworkJob job, JobOfFramework(words.step, system));
    subject = {std::move(job.job), std::move(job.labels), {}};
  } else if (!words.inputs.empty()) {
    DYNAMICCL_TRY(subject, SubjectOfTrace(words, system, words.step.config));
    if (words.step.network_gbps > 0) subject.job.network_gbps = words.step.network_gbps;
  } else {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "nothing to simulate"),
                    "a trace, --framework, or --paper all");
  }
  DYNAMICCL_CHECK_OK(TakeStragglers(words, subject.job));
  DYNAMICCL_CHECK_OK(TakeLoads(words, subject.job));
  subject.job.compute_jitter = words.jitter;
  subject.job.seed = words.seed;
  return Show(subject, words);
}

void RegisterStep(CLI::App& app, Words& words) {
  app.add_option("--framework", words.framework,
                 "A step of this framework instead of a trace (see trace generate --explain)");
  app.add_option("--model", words.model, "Preset with settings, gpt:layers=4,hidden=256 (default: gpt)");
  app.add_option("--data-parallel", words.step.world.data, "Data-parallel ranks (default: 2)");
  app.add_option("--tensor-parallel", words.step.world.tensor, "Tensor-parallel ranks (default: 1)");
  app.add_option("--shard-group", words.step.world.shard,
                 "Hybrid sharding: ranks that share one copy (default: all)");
  app.add_option("--set", words.settings,
                 "Settings of the framework: param_dtype=bfloat16,reduce_dtype=float32");
  app.add_option("--sequences", words.step.sequences, "Of a rank, in each pass (default: 1)")
      ->check(CLI::Range(1, 1 << 20));
  app.add_flag("--recompute", words.step.recomputes, "The backward computes the forward once more");
  app.add_option("--forward-ms", words.step.forward_ms,
                 "What a forward computes, instead of the accelerator's model")
      ->check(CLI::PositiveNumber);
  app.add_option("--accelerator", words.accelerator, "v100, a100 or h100 (default: h100; v100 with --paper)");
  app.add_flag("--scaling", words.scaling,
               "The framework's step on 8 to 4096 ranks: Ring, PAT, Tree, hybrid sharding");
}

void Register(CLI::App& app, Words& words) {
  CLI::Option* const inputs =
      app.add_option("trace", words.inputs, "Recorded traces; those of several ranks are taken together")
          ->check(CLI::ExistingFile);
  app.add_option(
      "--system", words.system,
      "System file, or one of " + DescribedSystemNames() + " (default: dgx-h100; dgx2 with --paper)");
  app.add_option("--network-gbps", words.step.network_gbps, "Of a node, all its links to others together")
      ->check(CLI::PositiveNumber);
  RegisterStep(app, words);
  app.get_option("--framework")->excludes(inputs);
  app.add_option("-n,--ranks", words.ranks, "Of a trace of one rank, which is mirrored (default: 2)")
      ->check(CLI::Range(1, 32767));
  app.add_option("--algorithm", words.algorithm,
                 "Of every collective that has it: Ring, PAT, Tree, Ring/LL128 (default: the cheapest)");
  app.add_option("--straggler", words.stragglers,
                 "RANK:FACTOR computes slower, RANK:+MS begins late; repeatable");
  app.add_option("--load", words.loads,
                 "Share of the network that strangers take: 0.5, NODE:0.5, 0.5@FROM_MS-UNTIL_MS; repeatable");
  app.add_option("--jitter", words.jitter, "Every computation takes longer by up to this share")
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--seed", words.seed, "Of the jitter (default: 1)");
  app.add_option("--paper", words.paper, "The ZeRO paper's figure, simulated: fig2 to fig8, or all")
      ->excludes(inputs)
      ->excludes("--framework");
  app.get_option("--scaling")->needs("--framework");
  app.add_flag("--json", words.json, "Write JSON instead of tables");
}

}  // namespace

Result<int> SimulateCommand(CommandLine& line) {
  Words words;
  Register(line.app(), words);
  if (const auto exit_code = line.Parse()) return *exit_code;
  return Run(words);
}

}  // namespace dynamiccl
