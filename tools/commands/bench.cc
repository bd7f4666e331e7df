// SPDX-License-Identifier: Apache-2.0
// `dynamiccl bench`: nccl-tests' options and columns over any NCCL. Without a launcher's variables it starts
// the ranks itself, each running this command again.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdlib>

#include "tools/bench/collective_bench.h"
#include "tools/bench/size_list.h"
#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/launch_options.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

struct Words {
  std::string collective;
  std::string begin = "32M";
  std::string end;
  std::string step;
  double factor = 0;
  std::string type = "float";
  std::string op = "sum";
  int root = 0;
  int iterations = 20;
  int warmups = 1;
  int check = 1;
  bool json = false;
  LaunchOptions launch{.n_ranks = 2};
};

void Register(CLI::App& app, Words& words) {
  app.add_option("collective", words.collective,
                 "all_reduce, all_gather, reduce_scatter, broadcast or reduce")
      ->required();
  app.add_option("-b,--minbytes", words.begin, "Smallest size, as 8, 64K or 1.5M")->capture_default_str();
  app.add_option("-e,--maxbytes", words.end, "Largest size (default: the smallest)");
  app.add_option("-i,--stepbytes", words.step, "Bytes between sizes (default 1M)");
  app.add_option("-f,--stepfactor", words.factor, "Factor between sizes");
  app.add_option("-n,--iters", words.iterations, "Timed calls a size")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("-w,--warmup_iters", words.warmups, "Calls before them")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("-c,--check", words.check, "1: check the data, 0: do not")
      ->check(CLI::Range(0, 1))
      ->capture_default_str();
  app.add_option("-d,--datatype", words.type, "float, half, bfloat16, double, int8 ... uint64")
      ->capture_default_str();
  app.add_option("-o,--op", words.op, "sum, prod, min, max or avg")->capture_default_str();
  app.add_option("-r,--root", words.root, "Root of broadcast and reduce")->check(CLI::NonNegativeNumber);
  app.add_option("-g,--ranks", words.launch.n_ranks, "Ranks to start")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--topology", words.launch.runtime.topology,
                 "Topology of hostccl: a TOML file or the name of a preset");
  app.add_option("--policy", words.launch.runtime.policy, "Load the runtime with this policy")
      ->check(CLI::ExistingFile);
  app.add_option("--mode", words.launch.runtime.mode, "Load the runtime in this mode: off, observe or frozen")
      ->check(CLI::IsMember({"off", "observe", "frozen"}));
  app.add_flag("--hostccl", words.launch.force_hostccl,
               "Use hostccl as NCCL (the default on a machine without a GPU)");
  app.add_flag("--no-hostccl", words.launch.force_no_hostccl, "Use the NCCL in LD_LIBRARY_PATH")
      ->excludes("--hostccl");
  app.add_option("--home", words.launch.home, "Installation to load from (default: the one of this program)");
  app.add_flag("--json", words.json, "Write JSON instead of the table");
}

template <typename T>
Result<T> Known(std::optional<T> value, const char* what, const std::string& word) {
  if (value) return *value;
  return MakeError(ErrorKind::kInvalidArgument, "dynamiccl bench: no {} '{}'", what, word);
}

Result<BenchOptions> Understand(const Words& words) {
  BenchOptions options{.root = words.root, .iterations = words.iterations, .warmups = words.warmups};
  options.check = words.check != 0;
  std::string name = words.collective;
  // nccl-tests' programs are called all_reduce_perf and so on.
  if (name.ends_with("_perf")) name.resize(name.size() - std::string_view("_perf").size());
  DYNAMICCL_TRY(options.collective, Known(ParseCollective(name), "collective", words.collective));
  if (static_cast<int>(options.collective) >= kTunableCollectives) {
    return MakeError(ErrorKind::kUnsupported, "dynamiccl bench: {} is not measured", words.collective);
  }
  DYNAMICCL_TRY(options.type, Known(ParseDataType(words.type), "data type", words.type));
  DYNAMICCL_TRY(options.op, Known(ParseReduceOp(words.op), "operator", words.op));
  if (words.root >= words.launch.n_ranks && std::getenv("RANK") == nullptr) {
    return MakeError(ErrorKind::kInvalidArgument, "dynamiccl bench: root {} of {} ranks", words.root,
                     words.launch.n_ranks);
  }
  SizeRange range{.factor = words.factor};
  DYNAMICCL_TRY(range.begin, ParseBytes(words.begin));
  DYNAMICCL_TRY(range.end, ParseBytes(words.end.empty() ? words.begin : words.end));
  if (!words.step.empty()) {
    DYNAMICCL_TRY(range.step, ParseBytes(words.step));
  }
  DYNAMICCL_TRY(options.sizes, SizesOf(range));
  return options;
}

void PrintHeader(const BenchSession& session, const BenchOptions& options) {
  fmt::print("# {} over {}, {} ranks, {} iterations, {} warm-ups; times are maxima over ranks\n",
             Name(options.collective), session.library().Description(), session.place().n_ranks,
             options.iterations, options.warmups);
  fmt::print("#\n# {:>61}{:>36}{:>32}{:>20}\n", "out-of-place", "in-place", "out-of-place", "in-place");
  fmt::print("# {:>10}{:>13}{:>10}{:>8}{:>8}", "size", "count", "type", "redop", "root");
  for (int half = 0; half < 2; ++half) fmt::print("{:>9}{:>8}{:>8}{:>7}", "time", "algbw", "busbw", "#wrong");
  fmt::print("{:>10}{:>10}{:>10}{:>10}\n# {:>10}{:>13}{:>26}", "p50", "p99", "p50", "p99", "(B)",
             "(elements)", "");
  for (int half = 0; half < 2; ++half) fmt::print("{:>9}{:>8}{:>8}{:>7}", "(us)", "(GB/s)", "(GB/s)", "");
  fmt::print("{:>10}{:>10}{:>10}{:>10}\n", "(us)", "(us)", "(us)", "(us)");
}

void PrintRow(const BenchOptions& options, const BenchRow& row) {
  const bool reduces =
      options.collective != Collective::kAllGather && options.collective != Collective::kBroadcast;
  const bool rooted =
      options.collective == Collective::kReduce || options.collective == Collective::kBroadcast;
  fmt::print("{:>12}{:>13}{:>10}{:>8}{:>8}", row.bytes, row.count, Name(options.type),
             reduces ? Name(options.op) : "none", rooted ? options.root : -1);
  for (const BenchTimes* times : {&row.out_of_place, &row.in_place}) {
    fmt::print("{:>9.2f}{:>8.2f}{:>8.2f}{:>7}", times->microseconds, times->algorithm_gbps, times->bus_gbps,
               options.check ? std::to_string(times->wrong) : "N/A");
  }
  fmt::print("{:>10.2f}{:>10.2f}{:>10.2f}{:>10.2f}\n", row.out_of_place.p50_us, row.out_of_place.p99_us,
             row.in_place.p50_us, row.in_place.p99_us);
  std::fflush(stdout);
}

Json ToJson(const BenchTimes& times) {
  return {{"time_us", times.microseconds}, {"algbw_gbps", times.algorithm_gbps},
          {"busbw_gbps", times.bus_gbps},  {"p50_us", times.p50_us},
          {"p99_us", times.p99_us},        {"wrong", times.wrong}};
}

Json ToJson(const BenchSession& session, const BenchOptions& options, const std::vector<BenchRow>& rows) {
  Json list = Json::array();
  for (const BenchRow& row : rows) {
    list.push_back({{"bytes", row.bytes},
                    {"count", row.count},
                    {"out_of_place", ToJson(row.out_of_place)},
                    {"in_place", ToJson(row.in_place)}});
  }
  return {{"schema", 1},
          {"library", session.library().Description()},
          {"collective", Name(options.collective)},
          {"ranks", session.place().n_ranks},
          {"type", Name(options.type)},
          {"op", Name(options.op)},
          {"iterations", options.iterations},
          {"checked", options.check},
          {"rows", list}};
}

// nccl-tests' last two lines.
void PrintFooter(const std::vector<BenchRow>& rows, uint64_t wrong, bool checked) {
  double bus = 0;
  for (const BenchRow& row : rows) bus += row.out_of_place.bus_gbps + row.in_place.bus_gbps;
  if (checked) fmt::print("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  fmt::print("# Avg bus bandwidth    : {:.4f}\n#\n",
             rows.empty() ? 0 : bus / static_cast<double>(2 * rows.size()));
}

Result<int> RunAsRank(const Words& words, const BenchOptions& options) {
  DYNAMICCL_TRY(const auto session, BenchSession::Open());
  const bool speaks = session->place().rank == 0;
  std::vector<BenchRow> rows;
  uint64_t wrong = 0;
  if (speaks && !words.json) PrintHeader(*session, options);
  DYNAMICCL_CHECK_OK(RunCollectiveBench(*session, options, [&](const BenchRow& row) {
    rows.push_back(row);
    wrong += row.out_of_place.wrong + row.in_place.wrong;
    if (speaks && !words.json) PrintRow(options, row);
  }));
  if (speaks && words.json) PrintJson(ToJson(*session, options, rows));
  if (speaks && !words.json) PrintFooter(rows, wrong, options.check);
  return wrong == 0 ? kExitOk : kExitResultSaysNo;
}

Result<int> LaunchRanks(CommandLine& line, Words& words) {
  RuntimeOptions& runtime = words.launch.runtime;
  runtime.preload = !runtime.policy.empty() || !runtime.mode.empty();
  DYNAMICCL_TRY(const Installation installation, FindInstallation(words.launch.home));
  std::vector<std::string> command{installation.dynamiccl, "bench"};
  command.insert(command.end(), line.arguments().begin(), line.arguments().end());
  DYNAMICCL_TRY(const LaunchPlan plan, PlanLaunch(words.launch, std::move(command)));
  DYNAMICCL_TRY(const LaunchOutcome outcome, Launch(plan));
  // The ranks run this command: what they end with by themselves is its answer.
  const auto& failed = outcome.first_failed;
  if (failed && failed->exit_code.value_or(kExitJobFailed) < kExitJobFailed) return *failed->exit_code;
  return ExitCodeOf(outcome);
}

}  // namespace

Result<int> BenchCommand(CommandLine& line) {
  Words words;
  Register(line.app(), words);
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_TRY(const BenchOptions options, Understand(words));
  if (std::getenv("RANK") != nullptr) return RunAsRank(words, options);
  return LaunchRanks(line, words);
}

}  // namespace dynamiccl
