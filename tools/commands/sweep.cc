// SPDX-License-Identifier: Apache-2.0
// `dynamiccl sweep`: times every legal config and the library's own choice on one or more topologies, into
// one measurement file. Each rank runs this command again; --worker tells rank 0 where to leave the rows of
// its topology. At the end a table shows, for each collective and size, the library's own choice and the best
// config:
//
//   topology            collective    bytes  default                us  noise  best                us   ratio
//   two-nodes-ethernet  AllReduce     65536  Ring Simple x4      657.9    44%  Tree Simple x2   346.4    1.90
//
// The ratio is the default's time over the best one's. The noise is the default's: the distance of its
// quartiles in % of its median.
#include <spdlog/spdlog.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "src/base/file_kind.h"
#include "src/base/settings.h"
#include "src/transport/topology.h"
#include "tools/bench/rehearsed_sweep.h"
#include "tools/bench/size_list.h"
#include "tools/bench/sweep.h"
#include "tools/bench/sweep_progress.h"
#include "tools/command_table.h"
#include "tools/commands/sweep_visits.h"
#include "tools/exit_code.h"
#include "tools/launch/machine_description.h"
#include "tools/launch/temporary_folder.h"
#include "tools/launch_options.h"
#include "tools/report/choice_comparison.h"
#include "tools/report/json_output.h"
#include "traces/format/measurement_file.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;
using MonotonicClock = std::chrono::steady_clock;

struct SweepCommandOptions {
  std::vector<std::string> topologies;
  std::vector<int> rank_counts{2};
  std::string collectives = "all_reduce,all_gather,reduce_scatter";
  std::string sizes = "1K,4K,16K,64K,256K,1M,4M,16M";
  int repeats = 12;
  double budget_s = 60;
  std::string order = "rounds";
  uint64_t seed = 1;
  std::string rehearse;  // path of a recorded sweep to use instead of a library
  std::string output;
  std::string worker;  // set for ranks only
  SweepPart part;      // what of the sweep the ranks measure, for ranks
  bool quiet = false;
  bool json = false;
  bool all_presets = false;
  LaunchOptions launch;
};

void RegisterSweepOptions(CLI::App& app, SweepCommandOptions& given) {
  app.add_option("--topology", given.topologies, "Topologies of hostccl: TOML files or names of presets");
  app.add_flag("--all-presets", given.all_presets, "Sweep every preset of hostccl, and the machine as it is");
  app.add_option("-g,--ranks", given.rank_counts,
                 "Ranks; several numbers sweep each topology with each of them")
      ->delimiter(',')
      ->check(CLI::Range(2, 1024))
      ->capture_default_str();
  app.add_option("--collectives", given.collectives, "Collectives, separated by commas")
      ->capture_default_str();
  app.add_option("--sizes", given.sizes, "Sizes in NCCL's total bytes, separated by commas")
      ->capture_default_str();
  app.add_option("--repeats", given.repeats, "Samples a config, taken in rounds over all configs")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option(
         "--budget", given.budget_s,
         "Time for the whole sweep (60s, 40m); rounds become fewer when it does not suffice, two at least")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"m", 60}, {"h", 3600}}))
      ->default_str("60s");
  app.add_option("--order", given.order,
                 "rounds: every config in every round; active: next what promises the most for its time; "
                 "random, grid: one config after the other. All but rounds go on after a kill")
      ->check(CLI::IsMember({"rounds", "active", "random", "grid"}))
      ->capture_default_str();
  app.add_option("--seed", given.seed, "Of --order random, and of the order of repeats that --rehearse gives")
      ->capture_default_str();
  app.add_option("--rehearse", given.rehearse,
                 "Measures nothing: takes times from this sweep's even repeats, as if they took as long now");
  app.add_option("-o,--output", given.output, "Measurement file to write");
  app.add_option("--worker", given.worker)->group("");
  app.add_option("--label", given.part.label)->group("");
  app.add_option("--part", given.part.number)->group("");
  app.add_option("--parts", given.part.count)->group("");
  app.add_option("--later", given.part.later_s)->group("");
  RegisterNcclOptions(app, given.launch);
  app.add_flag("-q,--quiet", given.quiet, "No table at the end");
  app.add_flag("--json", given.json, "The table as JSON");
}

Result<std::vector<Collective>> ParseCollectives(const std::string& text) {
  std::vector<Collective> collectives;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) {
    const auto collective = ParseCollective(word);
    if (!collective || static_cast<int>(*collective) >= kTunableCollectives) {
      return WithHint(
          MakeError(ErrorKind::kInvalidArgument, "dynamiccl sweep: no tunable collective '{}'", word),
          "all_reduce, all_gather, reduce_scatter, broadcast and reduce are");
    }
    collectives.push_back(*collective);
  }
  return collectives;
}

ChoiceOptions ChoiceOf(const SweepCommandOptions& given) {
  return {*ParseSweepOrder(given.order), given.seed, given.repeats};
}

// Runs one rank; rank 0 writes the rows.
Result<int> RunSweepAsRank(const SweepCommandOptions& given) {
  SweepOptions options{.topology = given.part.label, .repeats = given.repeats, .budget_s = given.budget_s};
  DYNAMICCL_TRY(options.collectives, ParseCollectives(given.collectives));
  DYNAMICCL_TRY(options.sizes, ParseBytesList(given.sizes));
  if (const char* tuner = std::getenv("NCCL_TUNER_PLUGIN")) options.tuner_path = tuner;
  DYNAMICCL_TRY(const auto session, BenchSession::Open());
  SweepPart part = given.part;
  part.budget_s = given.budget_s;
  SweepProgress progress(part);
  if (given.order != "rounds") {
    DYNAMICCL_CHECK_OK(VisitAsRank(*session, options, ChoiceOf(given), given.worker, progress));
    return kExitOk;
  }
  const bool is_first = session->place().rank == 0;
  if (is_first) options.observer = [&](const SweepPosition& position) { progress.Show(position); };
  DYNAMICCL_TRY(SweepResult result, RunSweep(*session, options));
  if (!is_first) return kExitOk;
  progress.Clear();
  spdlog::info("{}: {} rows, {} repeats each, {} groups disturbed, {:.1f} s", part.label, result.rows.size(),
               result.repeats, result.disturbed, result.seconds);
  const MeasurementFile file{.library = session->library().Description(),
                             .machine = MachineDescription(),
                             .contexts = {std::move(result.context)},
                             .rows = std::move(result.rows)};
  DYNAMICCL_CHECK_OK(WriteMeasurementFile(given.worker, file));
  return kExitOk;
}

// Returns the path of the journal that a sweep with a time budget keeps.
std::string JournalOf(const SweepCommandOptions& given) {
  return given.output + ".journal";
}

// One launch of a sweep: a topology with a number of ranks.
struct Part {
  std::string topology;
  std::string label;
  int n_ranks = 2;
};

// Returns an error if the topology's nodes have room for fewer than `n_ranks` ranks. Without this check the
// error would come only after minutes of measuring.
Status RequirePlaces(const std::string& topology, int n_ranks) {
  if (topology.empty()) return {};
  DYNAMICCL_TRY(const Topology loaded, LoadTopology(topology));
  DYNAMICCL_TRY(const std::vector<int> nodes, loaded.NodesOfRanks(n_ranks));
  return {};
}

// Returns an error if two launches have the same label. A measurement file distinguishes topologies only by
// their labels, so the rows of both launches would count as one topology's.
Status CheckLabels(const std::vector<Part>& parts) {
  std::map<std::string, std::string> topologies;
  for (const Part& part : parts) {
    const auto [first, is_new] = topologies.emplace(part.label, part.topology);
    if (is_new) continue;
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument,
                  "dynamiccl sweep: '{}' and '{}' would both be topology '{}' of the measurements",
                  first->second, part.topology, part.label),
        "name each topology and number of ranks once, and rename files that are named alike");
  }
  return {};
}

// Returns all launches. With --all-presets, topologies that are too small for the ranks are left out. If the
// user names a topology that is too small, returns an error.
Result<std::vector<Part>> PartsOf(const SweepCommandOptions& given) {
  std::vector<std::string> topologies = given.topologies;
  if (given.all_presets) {
    topologies.emplace_back();
    for (const TopologyPreset& preset : TopologyPresets()) topologies.push_back(preset.name);
  }
  if (topologies.empty()) topologies.push_back(TextSetting(Setting::kHostcclTopology));
  std::vector<Part> parts;
  for (const std::string& topology : topologies) {
    // The label of a part (a topology with a number of ranks) is the topology file's name without folder and
    // ending. With several numbers of ranks, the number is appended.
    const std::string name = topology.empty() ? "unshaped" : fs::path(topology).stem().string();
    for (const int n_ranks : given.rank_counts) {
      const Status places = RequirePlaces(topology, n_ranks);
      if (!places && !given.all_presets) return tl::unexpected(places.error());
      if (!places) {
        spdlog::info("{} is left out with {} ranks: {}", name, n_ranks, places.error().message);
        continue;
      }
      const std::string suffix = given.rank_counts.size() > 1 ? fmt::format("-{}r", n_ranks) : "";
      parts.push_back({topology, name + suffix, n_ranks});
    }
  }
  DYNAMICCL_CHECK_OK(CheckLabels(parts));
  return parts;
}

// Returns an error for a failed launch. A rank's exit code gives the kind of the error: if the rank reports
// wrong usage, such as a wrong topology, this command reports wrong usage too.
tl::unexpected<Error> Failure(const Part& part, const LaunchOutcome& outcome) {
  const int code =
      outcome.first_failed ? outcome.first_failed->exit_code.value_or(kExitJobFailed) : kExitJobFailed;
  const ErrorKind kind = code == kExitUsage         ? ErrorKind::kInvalidArgument
                         : code == kExitEnvironment ? ErrorKind::kUnavailable
                                                    : ErrorKind::kPeerFailed;
  return MakeError(kind, "sweep of {}: {}", part.label, Describe(outcome));
}

// Returns the options with which each rank runs `dynamiccl sweep` for one part (a topology with a number of
// ranks). Rank 0 writes the result to `path`.
std::vector<std::string> RankWords(const SweepCommandOptions& given, const SweepPart& part,
                                   const std::string& path) {
  return {"--worker",      path,
          "--label",       part.label,
          "--part",        std::to_string(part.number),
          "--parts",       std::to_string(part.count),
          "--later",       fmt::format("{:.1f}", part.later_s),
          "--sizes",       given.sizes,
          "--repeats",     std::to_string(given.repeats),
          "--collectives", given.collectives,
          "--order",       given.order,
          "--seed",        std::to_string(given.seed),
          "--budget",      fmt::format("{:.1f}s", part.budget_s)};
}

// Starts the ranks of one part (a topology with a number of ranks) and waits for them. Rank 0 writes the
// result to `path`. From `shown` the ranks tell the user how long this part and the later ones take.
Status LaunchPart(const SweepCommandOptions& given, const Part& part, const SweepPart& shown,
                  const std::string& path) {
  LaunchOptions launch = given.launch;
  launch.n_ranks = part.n_ranks;
  launch.runtime = {.topology = part.topology, .preload = false};
  DYNAMICCL_TRY(const Installation installation, FindInstallation(launch.home));
  if (installation.sweep_tuner.empty()) {
    return WithHint(MakeError(ErrorKind::kUnsupported, "this build has no libnccl-tuner-sweep.so"),
                    "build all targets (cmake --build)");
  }
  std::vector<std::string> command = RankWords(given, shown, path);
  command.insert(command.begin(), {installation.dynamiccl, "sweep"});
  DYNAMICCL_TRY(LaunchPlan plan, PlanLaunch(launch, std::move(command)));
  plan.environment["NCCL_TUNER_PLUGIN"] = installation.sweep_tuner;
  DYNAMICCL_TRY(const LaunchOutcome outcome, Launch(plan));
  if (!outcome.ok()) return Failure(part, outcome);
  return {};
}

// Refuses variables that pin NCCL's choice, because they keep the sweep from forcing configs.
Status RefusePins() {
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO", "NCCL_TUNER_PLUGIN"}) {
    if (std::getenv(name) == nullptr) continue;
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "dynamiccl sweep: {} is set, so configs cannot be forced", name),
                    fmt::format("unset {}", name));
  }
  return {};
}

// Measures all parts (launches) of the sweep and adds the results to `all`. If a part fails, `all` still
// holds the results of the parts before it.
Status SweepInRounds(const SweepCommandOptions& given, MeasurementFile& all) {
  DYNAMICCL_TRY(const TemporaryFolder folder, TemporaryFolder::Create("sweep"));
  DYNAMICCL_TRY(const std::vector<Part> parts, PartsOf(given));
  const auto begin = MonotonicClock::now();
  for (size_t i = 0; i < parts.size(); ++i) {
    const double spent_s = std::chrono::duration<double>(MonotonicClock::now() - begin).count();
    const double due = static_cast<double>(parts.size() - i), done = static_cast<double>(i);
    const SweepPart shown{.label = parts[i].label,
                          .number = static_cast<int>(i) + 1,
                          .count = static_cast<int>(parts.size()),
                          .budget_s = std::max(1.0, (given.budget_s - spent_s) / due),
                          .later_s = i == 0 ? 0 : spent_s / done * (due - 1)};
    const std::string path = folder.File(fmt::format("{}", i));
    DYNAMICCL_CHECK_OK(LaunchPart(given, parts[i], shown, path));
    DYNAMICCL_TRY(MeasurementFile file, ReadMeasurementFile(path));
    all.library = file.library;
    all.machine = file.machine;
    std::move(file.contexts.begin(), file.contexts.end(), std::back_inserter(all.contexts));
    std::move(file.rows.begin(), file.rows.end(), std::back_inserter(all.rows));
  }
  return {};
}

// Returns a text that identifies the plan. A journal with another text is not continued. The budget is not in
// the text, so a sweep may be continued with a larger budget.
std::string PlanText(const SweepCommandOptions& given, const std::vector<Part>& parts) {
  std::string text = fmt::format("{} seed {} repeats {} {} {}", given.order, given.seed, given.repeats,
                                 given.collectives, given.sizes);
  for (const Part& part : parts) text += fmt::format(" {}:{}r", part.label, part.n_ranks);
  return text;
}

// Measures until the time budget is spent. Continues from the journal of an earlier, interrupted sweep if
// there is one.
Status SweepByVisits(const SweepCommandOptions& given, MeasurementFile& all) {
  DYNAMICCL_TRY(const std::vector<Part> parts, PartsOf(given));
  VisitedSweep sweep{.journal = JournalOf(given),
                     .plan = PlanText(given, parts),
                     .topologies = {},
                     .choice = ChoiceOf(given),
                     .budget_s = given.budget_s,
                     .launch = [&](size_t part, double seconds, double later_s) {
                       const SweepPart shown{
                           .label = parts[part].label, .budget_s = seconds, .later_s = later_s};
                       return LaunchPart(given, parts[part], shown, JournalOf(given));
                     }};
  for (const Part& part : parts) sweep.topologies.push_back(part.label);
  DYNAMICCL_TRY(all, VisitTopologies(sweep));
  return {};
}

// Takes the times from a recorded sweep instead of measuring.
Status Rehearse(const SweepCommandOptions& given, MeasurementFile& all) {
  if (given.order == "rounds") {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "dynamiccl sweep: rounds are not rehearsed"),
                    "give --order active, random or grid");
  }
  DYNAMICCL_TRY(const MeasurementFile recorded, ReadMeasurementFile(given.rehearse));
  spdlog::info("all of it would take {:.1f} s", RehearsalSeconds(recorded));
  DYNAMICCL_TRY(all, RehearseSweep(recorded, ChoiceOf(given), given.budget_s));
  return {};
}

Status SweepAll(const SweepCommandOptions& given, MeasurementFile& all) {
  if (!given.rehearse.empty()) return Rehearse(given, all);
  return given.order == "rounds" ? SweepInRounds(given, all) : SweepByVisits(given, all);
}

// Prints the table at the end. A ratio above 1 means that the best config of the sweep is faster than the
// default.
void PrintSweepTable(const MeasurementFile& file) {
  fmt::print("{:<24}{:<14}{:>10}  {:<18}{:>10}{:>7}  {:<18}{:>10}{:>8}\n", "topology", "collective", "bytes",
             "default", "us", "noise", "best", "us", "ratio");
  for (const auto& cell : CellsOf(file)) {
    const TimedConfig usual = DefaultOf(cell);
    const TimedConfig best = BestOf(cell);
    const Timing& t = usual.microseconds;
    fmt::print("{:<24}{:<14}{:>10}  {:<18}{:>10.1f}{:>6.0f}%  {:<18}{:>10.1f}{:>8.2f}\n", cell.topology,
               Name(cell.collective), cell.bytes, Name(usual.config), t.median,
               t.median > 0 ? 100 * (t.high - t.low) / t.median : 0, Name(best.config),
               best.microseconds.median,
               best.microseconds.median > 0 ? t.median / best.microseconds.median : 0);
  }
}

Json SweepJson(const SweepCommandOptions& given, const MeasurementFile& file) {
  Json topologies = Json::array();
  for (const MeasurementContext& context : file.contexts) topologies.push_back(context.topology);
  return {{"schema", 1},
          {"output", given.output},
          {"library", file.library},
          {"measured", file.rows.size()},
          {"topologies", topologies},
          {"rows", CellsJson(file)}};
}

}  // namespace

Result<int> SweepCommand(CommandLine& line) {
  SweepCommandOptions given;
  RegisterSweepOptions(line.app(), given);
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_CHECK_OK(ParseCollectives(given.collectives));
  DYNAMICCL_CHECK_OK(ParseBytesList(given.sizes));
  if (!given.worker.empty()) return RunSweepAsRank(given);
  if (given.output.empty()) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "dynamiccl sweep: no file to write"),
                    "give -o FILE.measurements");
  }
  DYNAMICCL_CHECK_OK(CheckOutputs({given.output}));
  DYNAMICCL_CHECK_OK(RefusePins());
  MeasurementFile file;
  const Status swept = SweepAll(given, file);
  file.command = line.Quoted();
  if (!file.rows.empty()) {
    DYNAMICCL_CHECK_OK(WriteMeasurementFile(given.output, file));
    spdlog::info("{} rows in {}", file.rows.size(), given.output);
    if (swept) fs::remove(JournalOf(given));
  }
  if (!swept) return tl::unexpected(swept.error());
  if (given.json)
    PrintJson(SweepJson(given, file));
  else if (!given.quiet)
    PrintSweepTable(file);
  return kExitOk;
}

}  // namespace dynamiccl
