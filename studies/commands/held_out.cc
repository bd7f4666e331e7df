// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-lab held-out`: how far the fits of `dynamiccl calibrate` are off on rank counts and sizes that
// were left out of them.
#include <fmt/format.h>

#include <cmath>

#include "src/base/statistics.h"
#include "studies/calibration/held_out.h"
#include "studies/lab_commands.h"
#include "tools/exit_code.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

struct HeldOutOptions {
  std::vector<std::string> data;
  std::string only;
  bool json = false;
  FitOptions fit;
};

std::string Percent(const std::vector<double>& errors) {
  const ErrorSummary summary = SummarizeErrors(errors);
  return summary.cells == 0 ? "-" : fmt::format("{:.1f} / {:.1f}", 100 * summary.median, 100 * summary.mean);
}

Json HeldOutJson(const std::vector<double>& errors) {
  const ErrorSummary summary = SummarizeErrors(errors);
  if (summary.cells == 0) return nullptr;
  return {{"cells", summary.cells}, {"median", summary.median}, {"mean", summary.mean}};
}

void PrintHeader() {
  fmt::print("median / mean of |predicted / measured - 1|, %; each left out of the fit in turn\n\n");
  fmt::print(
      "| system | ranks | left out | cells | fitted | formulas alone | line in ranks | line in size | "
      "repeats "
      "|\n");
  fmt::print("|---|---|---|---|---|---|---|---|---|\n");
}

void PrintHeldOut(const HeldOutResult& result) {
  for (const auto& [left_out, errors] : result.errors) {
    fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", result.system,
               fmt::join(result.rank_counts, " "), Name(left_out), errors.system.size(),
               Percent(errors.system), Percent(errors.formulas), Percent(errors.by_ranks),
               Percent(errors.by_size), Percent(errors.repeats));
  }
}

// All left-out rank counts of a system together.
Coverage OfRankCounts(const HeldOutResult& result) {
  Coverage all;
  for (const auto& [left_out, coverage] : result.coverage) {
    if (left_out == LeftOut::kSize) continue;
    all.judged += coverage.judged;
    all.inside += coverage.inside;
    all.widths.insert(all.widths.end(), coverage.widths.begin(), coverage.widths.end());
  }
  return all;
}

std::string IntervalCells(const Coverage& coverage) {
  if (coverage.judged == 0) return "- | - | -";
  return fmt::format("{} | {:.1f} | {:.2f}", coverage.judged, 100 * coverage.Share(),
                     std::exp(Median(coverage.widths)));
}

void PrintIntervals(const std::vector<HeldOutResult>& results) {
  fmt::print(
      "\n| intervals that are to hold 90 % | left-out rank counts: times | inside, % | median factor | "
      "left-out "
      "sizes: times | inside, % | median factor |\n|---|---|---|---|---|---|---|\n");
  for (const HeldOutResult& result : results) {
    const auto sizes = result.coverage.find(LeftOut::kSize);
    fmt::print("| {} | {} | {} |\n", result.system, IntervalCells(OfRankCounts(result)),
               IntervalCells(sizes == result.coverage.end() ? Coverage() : sizes->second));
  }
}

Json CoverageJson(const HeldOutResult& result) {
  Json by_kind = Json::object();
  for (const auto& [left_out, coverage] : result.coverage)
    by_kind[Name(left_out)] = {
        {"judged", coverage.judged}, {"inside", coverage.inside}, {"median_width", Median(coverage.widths)}};
  return by_kind;
}

void PrintOrder(const std::vector<HeldOutResult>& results) {
  for (const HeldOutResult& result : results) {
    const ConfigOrder& order = result.order;
    if (order.calls == 0) continue;
    fmt::print(
        "{}: {} calls with several configs, {} pairs: Kendall's tau {:.3f}; the pick costs {} % more than "
        "the best, the library's own choice {} %\n",
        result.system, order.calls, order.pairs, order.Tau(), Percent(order.picked), Percent(order.library));
  }
}

// The bounds for the largest rank count, which the fit did not see. kMostMedian bounds the median error on
// full nodes, kMostMedianOnParts the median error where some runs used parts of nodes, and kMostMean the
// ratio of the mean error to the median error.
constexpr double kMostMedian = 0.15;
constexpr double kMostMedianOnParts = 0.25;
constexpr double kMostMean = 2;

// The errors of a system at its largest rank count, and which bounds they keep.
struct LargestCount {
  ErrorSummary fitted, line;
  bool median_holds, line_holds, mean_holds;
};

std::optional<LargestCount> AgainstBounds(const HeldOutResult& result) {
  const auto found = result.errors.find(LeftOut::kLargest);
  if (found == result.errors.end()) return std::nullopt;
  const ErrorSummary fitted = SummarizeErrors(found->second.system);
  const ErrorSummary line = SummarizeErrors(found->second.by_ranks);
  const double most = result.has_partial_nodes ? kMostMedianOnParts : kMostMedian;
  return LargestCount{fitted, line, fitted.median <= most, fitted.median <= line.median,
                      fitted.mean <= kMostMean * fitted.median};
}

const char* Held(bool holds) {
  return holds ? "held" : "missed";
}

void PrintBounds(const std::vector<HeldOutResult>& results) {
  fmt::print(
      "\n| system at its largest rank count | fitted | line | median at most 15 % (25 % with parts of nodes) "
      "| "
      "median at most the line's | mean at most twice the median |\n|---|---|---|---|---|---|\n");
  for (const HeldOutResult& result : results) {
    const auto largest = AgainstBounds(result);
    if (!largest) continue;
    const HeldOutErrors& errors = result.errors.at(LeftOut::kLargest);
    fmt::print("| {}, {} | {} | {} | {} | {} | {} |\n", result.system, result.rank_counts.back(),
               Percent(errors.system), Percent(errors.by_ranks), Held(largest->median_holds),
               Held(largest->line_holds), Held(largest->mean_holds));
  }
}

Json BoundsJson(const HeldOutResult& result) {
  const auto largest = AgainstBounds(result);
  if (!largest) return nullptr;
  return {{"partial_nodes", result.has_partial_nodes},
          {"median_holds", largest->median_holds},
          {"line_holds", largest->line_holds},
          {"mean_holds", largest->mean_holds}};
}

Json HeldOutJson(const HeldOutResult& result) {
  Json by_kind;
  for (const auto& [left_out, errors] : result.errors) {
    by_kind[Name(left_out)] = {{"fitted", HeldOutJson(errors.system)},
                               {"formulas", HeldOutJson(errors.formulas)},
                               {"line_in_ranks", HeldOutJson(errors.by_ranks)},
                               {"line_in_size", HeldOutJson(errors.by_size)},
                               {"repeats", HeldOutJson(errors.repeats)}};
  }
  return {{"system", result.system},
          {"ranks", result.rank_counts},
          {"left_out", by_kind},
          {"bounds", BoundsJson(result)},
          {"intervals", CoverageJson(result)},
          {"order",
           {{"calls", result.order.calls},
            {"pairs", result.order.pairs},
            {"tau", result.order.Tau()},
            {"picked", HeldOutJson(result.order.picked)},
            {"library", HeldOutJson(result.order.library)}}}};
}

// Adds the pooled result of a machine after the results of its settings, "MACHINE / NCCL / SETTING".
void AddMachines(std::vector<HeldOutResult>& results) {
  std::map<std::string, std::pair<HeldOutResult, int>> machines;
  for (const HeldOutResult& result : results) {
    const size_t end = result.system.find(" / ");
    if (end == std::string::npos) continue;
    auto& [pooled, settings] = machines[result.system.substr(0, end)];
    Pool(pooled, result);
    ++settings;
  }
  for (auto& [machine, entry] : machines) {
    if (entry.second < 2) continue;
    entry.first.system = fmt::format("{}, all {} settings", machine, entry.second);
    results.push_back(std::move(entry.first));
  }
}

Result<int> JudgeFits(const std::vector<TimedSystem>& systems, const HeldOutOptions& options) {
  std::vector<HeldOutResult> results;
  std::vector<std::string> skipped;
  for (const TimedSystem& system : systems) {
    auto result = EvaluateHeldOut(system, options.fit);
    if (result)
      results.push_back(*std::move(result));
    else if (result.error().kind == ErrorKind::kUnsupported)
      skipped.push_back(result.error().message);
    else
      return tl::unexpected<Error>(result.error());
  }
  AddMachines(results);
  if (options.json) {
    Json list = Json::array();
    for (const HeldOutResult& result : results) list.push_back(HeldOutJson(result));
    PrintJson({{"schema", 1}, {"systems", list}, {"not_judged", skipped}});
    return kExitOk;
  }
  PrintHeader();
  for (const HeldOutResult& result : results) PrintHeldOut(result);
  PrintBounds(results);
  PrintIntervals(results);
  fmt::print("\n");
  PrintOrder(results);
  for (const std::string& why : skipped) fmt::print("not judged: {}\n", why);
  return kExitOk;
}

}  // namespace

Result<int> HeldOutCommand(CommandLine& line) {
  HeldOutOptions options;
  CLI::App& app = line.app();
  app.add_option("data", options.data, "Measurement files, output of nccl-tests, tables of times")
      ->required();
  app.add_option("--system", options.only, "Only this system of those in the data");
  app.add_option("--seed", options.fit.seed, "Where the fit's further starts lie")->capture_default_str();
  app.add_option("--starts", options.fit.starts, "Starts of the fit")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_flag("--json", options.json, "Print JSON");
  if (const auto exit = line.Parse()) return *exit;
  TimedSystems collected;
  for (const std::string& path : options.data) DYNAMICCL_CHECK_OK(collected.Read(path));
  DYNAMICCL_TRY(const std::vector<TimedSystem> systems, SystemsOf(collected, options.only));
  return JudgeFits(systems, options);
}

}  // namespace dynamiccl
