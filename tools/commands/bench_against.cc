// SPDX-License-Identifier: Apache-2.0
// Runs `bench --against` for each collective, number of ranks and size (a cell), and prints the comparison.
#include "tools/commands/bench_options.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "src/base/statistics.h"
#include "tools/bench/against/compared_rank.h"
#include "tools/bench/against/comparison.h"
#include "tools/bench/against/side_programs.h"
#include "tools/commands/bench_table.h"
#include "tools/exit_code.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

// Names for the table's head, by the value of -R.
constexpr const char* kRegistrations[] = {"private buffers (-R 0)", "registered buffers (-R 1)",
                                          "symmetric windows (-R 2)"};

std::vector<std::string> PeersOf(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');) names.push_back(name);
  return names;
}

// Refuses options with which MPI and Gloo cannot do the same as hostccl.
Status CheckAgainst(const BenchCommandOptions& given, const BenchOptions& options) {
  for (const std::string& peer : PeersOf(given.against)) {
    if (!IsPeerName(peer))
      return WithHint(
          MakeError(ErrorKind::kInvalidArgument, "dynamiccl bench --against: no library '{}'", peer),
          "openmpi, mpich, impi and gloo, separated by commas");
  }
  const bool one_call = options.types.size() == 1 && options.ops.size() == 1 &&
                        !options.ops.front().doubled && options.roots == std::vector<int>{0};
  if (one_call && given.threads == 1) return {};
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument,
                "dynamiccl bench --against compares one type and one operator of MPI's, with root 0 and a "
                "process a rank"),
      "leave -d all, -o all, -o mulsum, -r and -t out");
}

// Returns the program of hostccl's ranks, which is this program itself.
Result<SideProgram> OurProgram(const BenchCommandOptions& given, const SideSettings& settings) {
  RuntimeOptions runtime = given.launch.runtime;
  runtime.preload = !runtime.policy.empty() || !runtime.mode.empty();
  runtime.hostccl = true;
  SideProgram side{.name = "hostccl",
                   .command = {settings.installation.dynamiccl, "bench", "all_reduce", "--control", "@socket",
                               "-R", std::to_string(given.registration), "--choice", given.choice, "--bind",
                               BindingWord(settings)},
                   .starts_all_ranks = false};
  DYNAMICCL_TRY(side.environment, RuntimeEnvironment(settings.installation, runtime));
  if (given.choice == "default") return side;
  if (settings.installation.sweep_tuner.empty())
    return WithHint(
        MakeError(ErrorKind::kUnsupported, "--choice best: this build has no libnccl-tuner-sweep.so"),
        "build all targets (cmake --build)");
  side.environment["NCCL_TUNER_PLUGIN"] = settings.installation.sweep_tuner;
  return side;
}

// Starts hostccl's side first, then the other libraries. A library that is not available is skipped with a
// warning.
Result<std::vector<Side>> StartSides(const BenchCommandOptions& given, const SideSettings& settings,
                                     const std::string& folder) {
  std::vector<Side> sides;
  DYNAMICCL_TRY(const SideProgram ours, OurProgram(given, settings));
  DYNAMICCL_TRY(Side first, Side::Start(ours, settings.n_ranks, folder));
  sides.push_back(std::move(first));
  for (const std::string& name : PeersOf(given.against)) {
    const auto program = FindPeer(name, settings);
    auto side = program ? Side::Start(*program, settings.n_ranks, folder)
                        : Result<Side>(tl::unexpected<Error>(program.error()));
    if (side)
      sides.push_back(std::move(*side));
    else
      spdlog::warn("{}: skipped: {}{}{}", name, side.error().message,
                   side.error().hint.empty() ? "" : "; get it with: ", side.error().hint);
  }
  return sides;
}

void PrintCell(const CellResult& cell) {
  const uint64_t bytes =
      std::max(cell.call.layout.send, cell.call.layout.receive) * ElementBytes(cell.call.type);
  for (const SideResult& side : cell.sides) {
    fmt::print("{:>14} {:>5} {:>10} {:>8}", ProgramName(cell.call.collective), cell.n_ranks, bytes,
               side.name);
    if (!side.missing.empty()) {
      fmt::print("  {}\n", side.missing);
      continue;
    }
    const double gbps = cell.algorithm_gbps(side);
    fmt::print(" {:>10.2f} {:>6.0f} {:>8.2f} {:>6.0f} {:>10.2f} {:>10.2f} {:>9.2f} {:>9.2f}  {}\n",
               side.time_us(), SpreadPercent(side.microseconds), gbps, 100 * gbps / cell.copy_limit_gbps,
               side.p50(), side.p99(), cell.TimeRatio(side).value_or(0), cell.SingleRatio(side).value_or(0),
               side.config.empty() && cell.void_rounds == 0
                   ? ""
                   : fmt::format("{}{}", side.config,
                                 cell.void_rounds > 0 ? fmt::format(" {} void", cell.void_rounds) : ""));
  }
  std::fflush(stdout);
}

void PrintHead(const BenchCommandOptions& given, const BenchOptions& options,
               const ComparisonOptions& rounds) {
  fmt::print(
      "# hostccl against {}: {}, {}, choice {}, {} {}, medians of {} rounds in turns, bursts of {:g} ms\n",
      given.against, kRegistrations[given.registration],
      given.bind == "core" ? "a core a rank where there are enough" : "unbound", given.choice,
      Name(options.types.front()), options.ops.front().name(), rounds.rounds, rounds.burst_ms);
  fmt::print(
      "# time: slowest rank, back to back; p50, p99: single calls; x ours: its time over ours, above 1 ours "
      "is "
      "faster\n");
  fmt::print("#{:>13} {:>5} {:>10} {:>8} {:>10} {:>6} {:>8} {:>6} {:>10} {:>10} {:>9} {:>9}\n", "collective",
             "ranks", "bytes", "library", "time(us)", "spread", "GB/s", "%copy", "p50(us)", "p99(us)", "time",
             "p50");
  fmt::print("#{:>13} {:>5} {:>10} {:>8} {:>10} {:>6} {:>8} {:>6} {:>10} {:>10} {:>9} {:>9}\n", "", "", "",
             "", "", "(%)", "(algbw)", "", "", "", "x ours", "x ours");
}

// Says how one other library compares with hostccl, for one collective and number of ranks. Each value is the
// other library's time divided by hostccl's at one size: of calls in bursts (`time`) and of single calls
// (`single`).
struct Means {
  std::vector<double> time;
  std::vector<double> single;
};

void PrintMeans(const std::vector<CellResult>& cells) {
  std::map<std::tuple<std::string_view, int, std::string>, Means> means;
  for (const CellResult& cell : cells) {
    for (size_t i = 1; i < cell.sides.size(); ++i) {
      Means& mean = means[{ProgramName(cell.call.collective), cell.n_ranks, cell.sides[i].name}];
      if (const auto ratio = cell.TimeRatio(cell.sides[i])) mean.time.push_back(*ratio);
      if (const auto ratio = cell.SingleRatio(cell.sides[i])) mean.single.push_back(*ratio);
    }
  }
  fmt::print("#\n# its time over ours, over all sizes: geometric mean (least to most)\n");
  for (const auto& [key, mean] : means) {
    if (mean.time.empty()) continue;
    const auto& [collective, ranks, name] = key;
    const auto [least, most] = std::minmax_element(mean.time.begin(), mean.time.end());
    fmt::print("# {:>14} {:>3} ranks {:>8}: {:>6.2f} ({:.2f} to {:.2f}), single calls {:.2f}\n", collective,
               ranks, name, GeometricMean(mean.time), *least, *most, GeometricMean(mean.single));
  }
}

Json BenchAgainstJson(const CellResult& cell) {
  Json sides = Json::array();
  for (const SideResult& side : cell.sides) {
    if (!side.missing.empty()) {
      sides.push_back({{"library", side.name}, {"missing", side.missing}});
      continue;
    }
    sides.push_back({{"library", side.name},
                     {"config", side.config},
                     {"time_us", side.time_us()},
                     {"algbw_gbps", cell.algorithm_gbps(side)},
                     {"p50_us", side.p50()},
                     {"p99_us", side.p99()},
                     {"time_over_ours", cell.TimeRatio(side).value_or(0)},
                     {"p50_over_ours", cell.SingleRatio(side).value_or(0)},
                     {"round_us", side.microseconds}});
  }
  return {{"collective", ProgramName(cell.call.collective)},
          {"ranks", cell.n_ranks},
          {"bytes", std::max(cell.call.layout.send, cell.call.layout.receive) * ElementBytes(cell.call.type)},
          {"copy_limit_gbps", cell.copy_limit_gbps},
          {"void_rounds", cell.void_rounds},
          {"libraries", sides}};
}

// Measures all collectives and sizes with one number of ranks.
Status CompareWithRanks(const BenchCommandOptions& given, const BenchOptions& options, int n_ranks,
                        const std::string& folder, std::vector<CellResult>& cells) {
  DYNAMICCL_TRY(const Installation installation, FindInstallation(given.launch.home));
  const SideSettings settings{installation, n_ranks, given.bind == "core", given.python};
  DYNAMICCL_TRY(std::vector<Side> sides, StartSides(given, settings, folder));
  DYNAMICCL_TRY(const std::vector<TestedCollective> collectives, CollectivesOf(given));
  for (const TestedCollective collective : collectives) {
    for (const uint64_t bytes : options.sizes) {
      const DataType type = options.types.front();
      const size_t width = ElementBytes(type);
      const ComparedCall call{collective, type, options.ops.front().op,
                              LayoutOf(collective, bytes / width, width, n_ranks)};
      if (call.layout.argument == 0) continue;
      DYNAMICCL_TRY(CellResult cell, CompareCall(sides, call, n_ranks, {options.rounds, given.burst_ms}));
      if (given.json != "-") PrintCell(cell);
      cells.push_back(std::move(cell));
    }
  }
  return {};
}

}  // namespace

Result<int> RunAgainst(const BenchCommandOptions& given, const BenchOptions& options) {
  DYNAMICCL_CHECK_OK(CheckAgainst(given, options));
  std::string folder = (fs::temp_directory_path() / "dynamiccl-against-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr)
    return MakeError(ErrorKind::kUnavailable, "no temporary folder {}: {}", folder, ErrnoText(errno));
  const bool prints = given.json != "-";
  if (prints) PrintHead(given, options, {options.rounds, given.burst_ms});
  std::vector<CellResult> cells;
  Status done;
  for (const int n_ranks : given.ranks) {
    if (done) done = CompareWithRanks(given, options, n_ranks, folder, cells);
  }
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  DYNAMICCL_CHECK_OK(done);
  if (prints) PrintMeans(cells);
  if (given.json.empty()) return kExitOk;
  Json rows = Json::array();
  for (const CellResult& cell : cells) rows.push_back(BenchAgainstJson(cell));
  const Json json{{"schema", 1},
                  {"against", given.against},
                  {"registration", given.registration},
                  {"choice", given.choice},
                  {"type", Name(options.types.front())},
                  {"rounds", options.rounds},
                  {"cells", rows}};
  if (given.json == "-")
    PrintJson(json);
  else
    DYNAMICCL_CHECK_OK(WriteJsonFile(given.json, json));
  return kExitOk;
}

Result<int> RunComparedRank(const BenchCommandOptions& given) {
  DYNAMICCL_TRY(const RankPlace place, RankPlaceFromEnvironment());
  BindRank(given.bind, place.rank);
  DYNAMICCL_TRY(
      const auto session,
      BenchSession::Open({.place = place, .registration = static_cast<Registration>(given.registration)}));
  ComparedRankOptions options{.socket = given.control};
  const char* tuner = std::getenv("NCCL_TUNER_PLUGIN");
  if (given.choice == "best" && tuner != nullptr) options.tuner_path = tuner;
  DYNAMICCL_CHECK_OK(ServeComparison(*session, options));
  return kExitOk;
}

}  // namespace dynamiccl
