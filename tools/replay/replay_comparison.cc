// SPDX-License-Identifier: Apache-2.0
// Replays the trace once with each arm (one way to choose configs) in every round. The first arm of a round
// changes from round to round. The times of each row of the table are summarised over all rounds.
#include "tools/replay/replay_comparison.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tools/replay/replay_report.h"
#include "tools/report/choice_comparison.h"

namespace dynamiccl {
namespace {

using RunsOfArms = std::vector<std::vector<ArmRun>>;  // by arm, by round

// Runs all arms for all rounds and returns each run, by arm and round. It is an error if a run issues other
// operations than the planned ones.
Result<RunsOfArms> RunRounds(const ReplayPlan& plan, const std::vector<ReplayArm>& arms, int rounds,
                             const RunArm& run, const GoesOn& goes_on) {
  const std::string planned = OperationText(OperationHash(plan));
  RunsOfArms runs(arms.size());
  size_t finished = 0;
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < arms.size(); ++i, ++finished) {
      if (goes_on && finished > 0 && !goes_on(finished)) return runs;
      const size_t arm = (i + static_cast<size_t>(round)) % arms.size();
      DYNAMICCL_TRY(ArmRun one, run(arms[arm]));
      if (one.operations != planned) {
        return MakeError(ErrorKind::kInternal, "'{}' issued operations {}, planned were {}", arms[arm].name,
                         one.operations, planned);
      }
      runs[arm].push_back(std::move(one));
    }
  }
  return runs;
}

bool SameKey(const ReplayRow& row, const TraceCall& call) {
  return row.stage == call.issued.labelled_stage && row.collective == call.issued.call.collective &&
         row.size_class == SizeClassOf(call.issued.call.bytes);
}

// The configs of a row's calls: "Ring LL, Tree LL" where they differ.
std::string ConfigsOf(const ReplayPlan& plan, const ArmRun& run, const ReplayRow& row) {
  std::set<std::string> names;
  size_t next = 0;
  for (const ReplayGroup& group : plan.groups) {
    for (const TraceCall& call : group.calls) {
      if (next < run.configs.size() && SameKey(row, call)) names.insert(Name(run.configs[next]));
      ++next;
    }
  }
  std::string text;
  for (const std::string& name : names) text += text.empty() ? name : ", " + name;
  return text;
}

// Returns the time of one row of the table under one arm, from the arm's runs. The same plan gives the same
// rows in the same order, whatever the times.
ComparedTime TimeOf(const ReplayPlan& plan, const std::vector<ArmRun>& runs, size_t row) {
  std::vector<double> samples;
  std::vector<ReplayRow> rows;
  for (const ArmRun& run : runs) {
    rows = SummarizeReplay(plan, run.group_us);
    samples.push_back(rows[row].replayed_us / static_cast<double>(rows[row].calls));
  }
  return {Summarize(std::move(samples)), ConfigsOf(plan, runs.front(), rows[row])};
}

Json ToJson(const Timing& timing) {
  return {{"median", timing.median}, {"low", timing.low}, {"high", timing.high}, {"repeats", timing.repeats}};
}

Json RecordedOf(const ReplayRow& row) {
  if (row.recorded_calls == 0) return nullptr;
  return row.recorded_us / static_cast<double>(row.recorded_calls);
}

double LogRatio(const Timing& first, const Timing& other) {
  return std::abs(std::log(other.median / first.median));
}

// Returns the difference of two times, "-4.2 %", or "~" where it is noise (see FormatComparison). `again` has
// the times of the arm kDefaultAgain and may be null. Simulated times have one repeat and no noise.
std::string Against(const Timing& first, const Timing& other, const Timing* again) {
  const bool differ = first.repeats == 1 ? first.median != other.median : ClearlyDiffer(first, other);
  const bool is_noise =
      again != nullptr && again != &other && LogRatio(first, other) <= LogRatio(first, *again);
  if (!differ || is_noise) return "~";
  return fmt::format("{:+.1f} %", 100 * (other.median / first.median - 1));
}

// Returns the index of kDefaultAgain in the names of the arms; 0 if it is not among them.
size_t AgainAmong(const std::vector<std::string>& arms) {
  const auto again = std::find(arms.begin(), arms.end(), kDefaultAgain);
  return again == arms.end() ? 0 : static_cast<size_t>(again - arms.begin());
}

std::string FormatRow(const ComparedRow& row, size_t again) {
  const Json recorded = RecordedOf(row.what);
  std::string text =
      fmt::format("{:<8} {:<14} {:<16} {:>6} {:>10} {:>11}", Name(row.what.stage), Name(row.what.collective),
                  Name(row.what.size_class), row.what.calls, FormatBytes(row.what.bytes),
                  recorded.is_null() ? "-" : fmt::format("{:.1f}", recorded.get<double>()));
  for (const ComparedTime& time : row.times) text += fmt::format(" {:>11.1f}", time.us_per_call.median);
  const Timing* const noise = again == 0 ? nullptr : &row.times[again].us_per_call;
  for (size_t i = 1; i < row.times.size(); ++i) {
    const bool is_nccls = row.times[i].config == Name(kLeaveNcclAlone);
    text += fmt::format(" {:>9}",
                        is_nccls ? "~" : Against(row.times[0].us_per_call, row.times[i].us_per_call, noise));
  }
  if (!row.times.back().config.empty()) text += "  " + row.times.back().config;
  return text + "\n";
}

}  // namespace

Result<ReplayComparison> CompareReplays(const ReplayPlan& plan, const std::vector<ReplayArm>& arms,
                                        int rounds, const RunArm& run, const GoesOn& goes_on) {
  DYNAMICCL_TRY(const RunsOfArms runs, RunRounds(plan, arms, rounds, run, goes_on));
  ReplayComparison comparison{.library = runs[0][0].library,
                              .operations = runs[0][0].operations,
                              .rounds = rounds,
                              .notes = plan.notes};
  for (const ReplayRow& row : SummarizeReplay(plan, runs[0][0].group_us))
    comparison.rows.push_back({row, {}});
  for (size_t arm = 0; arm < arms.size() && !runs[arm].empty(); ++arm) {
    comparison.arms.push_back(arms[arm].name);
    std::vector<double> walls;
    for (const ArmRun& one : runs[arm]) {
      walls.push_back(one.wall_us);
      comparison.checked += one.checked;
      comparison.wrong += one.wrong;
    }
    comparison.wall_us.push_back(Summarize(std::move(walls)));
    for (size_t row = 0; row < comparison.rows.size(); ++row)
      comparison.rows[row].times.push_back(TimeOf(plan, runs[arm], row));
  }
  return comparison;
}

Json ToJson(const ReplayComparison& comparison) {
  Json arms = Json::array(), rows = Json::array();
  for (size_t i = 0; i < comparison.arms.size(); ++i)
    arms.push_back({{"name", comparison.arms[i]}, {"wall_us", ToJson(comparison.wall_us[i])}});
  for (const ComparedRow& row : comparison.rows) {
    Json one = {{"stage", Name(row.what.stage)},
                {"collective", Name(row.what.collective)},
                {"size_class", Name(row.what.size_class)},
                {"calls", row.what.calls},
                {"bytes", row.what.bytes},
                {"recorded_us", RecordedOf(row.what)}};
    for (size_t i = 0; i < comparison.arms.size(); ++i) {
      one[comparison.arms[i]] = {{"us_per_call", ToJson(row.times[i].us_per_call)},
                                 {"config", row.times[i].config}};
    }
    rows.push_back(std::move(one));
  }
  return {{"schema", 1},
          {"library", comparison.library},
          {"ranks", comparison.ranks},
          {"operations", comparison.operations},
          {"rounds", comparison.rounds},
          {"checked", comparison.checked},
          {"wrong", comparison.wrong},
          {"notes", comparison.notes},
          {"arms", arms},
          {"rows", rows}};
}

std::string FormatComparison(const ReplayComparison& comparison) {
  std::string text = fmt::format("{:<8} {:<14} {:<16} {:>6} {:>10} {:>11}", "stage", "collective",
                                 "size class", "calls", "bytes", "recorded");
  for (const std::string& arm : comparison.arms) text += fmt::format(" {:>11}", arm);
  for (size_t i = 1; i < comparison.arms.size(); ++i) text += fmt::format(" {:>9}", comparison.arms[i]);
  text += "   us per call; against " + comparison.arms[0] + ", ~ within the noise\n";
  const size_t again = AgainAmong(comparison.arms);
  for (const ComparedRow& row : comparison.rows) text += FormatRow(row, again);
  for (size_t i = 0; i < comparison.arms.size(); ++i) {
    const Timing& wall = comparison.wall_us[i];
    text += fmt::format("# whole plan, {:<8} {:>11.1f} us ({:.1f} to {:.1f})", comparison.arms[i],
                        wall.median, wall.low, wall.high);
    text += i == 0 ? "\n"
                   : fmt::format("  {}\n", Against(comparison.wall_us[0], wall,
                                                   again == 0 ? nullptr : &comparison.wall_us[again]));
  }
  return text;
}

}  // namespace dynamiccl
