// SPDX-License-Identifier: Apache-2.0
// The sections of the report about the calls of a run: all runs side by side, ZeRO stages, one run, calls
// over time, and who decided calls.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "src/collective/size_class.h"
#include "tools/report/run_report.h"
#include "tools/report/svg_chart.h"

namespace dynamiccl {
namespace {

// The most rows that the page's table of sizes has, so that the page stays readable. keys.csv and `dynamiccl
// trace export` have every size.
constexpr size_t kLargestTable = 40;

std::string Overview(const TraceSummary& summary) {
  return HtmlParagraph(fmt::format("{} {}, {} calls a rank, {} marked steps, {}{}{}. Library: {}.",
                                   summary.sections, summary.sections == 1 ? "process" : "processes",
                                   summary.calls, summary.steps, Describe(summary.missing),
                                   summary.closed ? "" : ", a process did not end in order",
                                   summary.mirrored ? ", recorded on one rank only and mirrored to all" : "",
                                   summary.library.empty() ? "unknown" : summary.library));
}

std::string SizeTable(const TraceSummary& summary) {
  HtmlTable table({{"collective"}, {"bytes", true}, {"calls", true}});
  size_t rows = 0;
  for (const auto& [key, calls] : summary.sizes) {
    if (rows == kLargestTable) break;
    ++rows;
    table.AddRow({key.first, FormatBytes(key.second), std::to_string(calls)});
  }
  const size_t hidden = summary.sizes.size() - std::min(rows, summary.sizes.size());
  return table.Html() +
         (hidden > 0 ? HtmlParagraph(fmt::format("{} more sizes are not shown.", hidden)) : "");
}

std::string DecisionTable(const TraceSummary& summary) {
  HtmlTable table({{"decided by"}, {"choice"}, {"calls", true}});
  for (const auto& [key, calls] : summary.decisions)
    table.AddRow({key.first, key.second, std::to_string(calls)});
  return table.Html();
}

std::string OverviewHtml(const TraceSummary& summary) {
  return HtmlParagraph(Describe(summary.coverage)) + Overview(summary) + SizeTable(summary);
}

// Number of calls about which NCCL asked a tuner.
int64_t AllDecisions(const RunReport& run) {
  int64_t calls = 0;
  for (int by = 0; by < kDeciders; ++by) calls += run.CallsDecidedBy(static_cast<DecidedBy>(by));
  return calls;
}

// Returns who decided which share of the calls, such as "policy 93.1 %, user pin 6.9 %".
std::string DecidersText(const RunReport& run) {
  const auto all = static_cast<double>(AllDecisions(run));
  std::string text;
  for (int i = 0; i < kDeciders; ++i) {
    const auto by = static_cast<DecidedBy>(i);
    const int64_t calls = run.CallsDecidedBy(by);
    if (calls == 0) continue;
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", Name(by),
                        100 * static_cast<double>(calls) / all);
  }
  return text.empty() ? "nobody was asked" : text;
}

// The median step time as text. It needs four marked steps: the first two warm up, and the end of the last is
// unknown.
std::string StepText(const RunReport& run) {
  if (run.step_ms > 0) return fmt::format("{:.4g} ms", run.step_ms);
  return run.summary.steps > 0 ? "fewer than 4 marked" : "not marked";
}

// Time for one training sample, such as "5.1 ms, at the end 4.2 ms with 16 samples a step in place of 8", or
// "not marked".
std::string SampleText(const RunReport& run) {
  if (!run.sample_times) return "not marked";
  const SampleTimes& times = *run.sample_times;
  std::string text = fmt::format("{:.4g} ms, at the end {:.4g} ms", times.first_ms, times.last_ms);
  if (times.first_samples != times.last_samples)
    text += fmt::format(" with {} samples a step in place of {}", times.last_samples, times.first_samples);
  return text;
}

// ---- stages ----

std::string StageName(ZeroStage stage) {
  return stage == ZeroStage::kUnknown ? "unlabelled" : fmt::format("stage {}", static_cast<int>(stage));
}

using NumberOfRow = double (*)(const StageRow&);

// Adds one bar for each ZeRO stage, with one part for each collective. The bar's name is `run` and the stage.
// With `a_step` the values are for one marked step, else percent of the stage's total.
void AddBars(const StageAccount& stages, const std::string& run, bool a_step, NumberOfRow number,
             std::vector<Bar>& bars) {
  std::map<ZeroStage, std::map<Collective, double>> sums;
  std::map<ZeroStage, double> totals;
  for (const StageRow& row : stages.rows) {
    sums[row.stage][row.collective] += number(row);
    totals[row.stage] += number(row);
  }
  for (const auto& [stage, parts] : sums) {
    Bar bar{run + StageName(stage), {}};
    const double divisor = a_step ? static_cast<double>(stages.steps.at(stage)) : totals[stage] / 100;
    for (const auto& [collective, sum] : parts)
      bar.parts.push_back({std::string(Name(collective)), divisor > 0 ? sum / divisor : 0});
    bars.push_back(std::move(bar));
  }
}

// The bars for the ZeRO stages of all runs. If there are several runs, each bar names its run.
std::vector<Bar> BarsOf(const std::vector<RunReport>& runs, bool a_step, NumberOfRow number) {
  std::vector<Bar> bars;
  for (const RunReport& run : runs)
    AddBars(run.stages, runs.size() > 1 ? run.name + ": " : "", a_step, number, bars);
  return bars;
}

// A number of calls with three digits, or as a whole number from a hundred on.
std::string CallsText(double calls) {
  return calls < 100 ? fmt::format("{:.3g}", calls) : fmt::format("{:.0f}", calls);
}

// Adds a run's table rows, one for each ZeRO stage, collective, role and phase. With `a_step` the numbers are
// for one marked step, so every stage must have marked steps.
void AddStageRows(const RunReport& run, bool a_step, HtmlTable& table) {
  const StageAccount& stages = run.stages;
  for (const StageRow& row : stages.rows) {
    const auto steps = stages.steps.find(row.stage);
    const double of = a_step ? static_cast<double>(steps->second) : 1;
    const std::string sizes = row.least_bytes == row.most_bytes
                                  ? FormatBytes(row.least_bytes)
                                  : FormatBytes(row.least_bytes) + " to " + FormatBytes(row.most_bytes);
    table.AddRow({run.name, StageName(row.stage), std::string(Name(row.collective)),
                  std::string(Name(row.role)), std::string(Name(row.phase)),
                  CallsText(static_cast<double>(row.calls) / of),
                  FormatBytes(static_cast<uint64_t>(static_cast<double>(row.bytes) / of)), sizes});
  }
}

std::string StageTable(const std::vector<RunReport>& runs, bool a_step) {
  HtmlTable table({{"run"},
                   {"stage"},
                   {"collective"},
                   {"role"},
                   {"phase"},
                   {a_step ? "calls a step" : "calls", true},
                   {a_step ? "bytes a step" : "bytes", true},
                   {"sizes"}});
  for (const RunReport& run : runs) AddStageRows(run, a_step, table);
  return table.Html();
}

// True if `holds` returns true for all rows of all runs.
bool AllRows(const std::vector<RunReport>& runs, bool (*holds)(const StageRow&, const StageAccount&)) {
  return std::ranges::all_of(runs, [&](const RunReport& run) {
    return std::ranges::all_of(run.stages.rows, [&](const StageRow& row) { return holds(row, run.stages); });
  });
}

// ---- time ----

// Bytes over time as stacked columns in MiB. Collectives are in order of first appearance.
TimeColumns ColumnsOf(const BytesOverTime& over) {
  std::vector<Collective> seen;
  for (const auto& part : over.parts) {
    for (const auto& [collective, bytes] : part) {
      if (std::find(seen.begin(), seen.end(), collective) == seen.end()) seen.push_back(collective);
    }
  }
  TimeColumns columns{.length_ms = over.length_ms, .unit = "MiB"};
  for (const Collective collective : seen) columns.names.emplace_back(Name(collective));
  for (const auto& part : over.parts) {
    std::vector<double> column;
    for (const Collective collective : seen) {
      const auto bytes = part.find(collective);
      column.push_back(bytes == part.end() ? 0 : static_cast<double>(bytes->second) / (1 << 20));
    }
    columns.columns.push_back(std::move(column));
  }
  return columns;
}

std::string StepChart(const StepWindow& step) {
  std::vector<std::string> names;
  std::vector<LaneSlice> slices;
  for (const CallSlice& slice : step.slices) {
    const std::string name(Name(slice.collective));
    auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) found = names.insert(found, name);
    slices.push_back({slice.lane, slice.start_ms, slice.length_ms, static_cast<size_t>(found - names.begin()),
                      slice.text});
  }
  return SlicesInLanes(step.what, step.lanes, names, slices, step.length_ms);
}

// Says what the chart of one step leaves out, and how the user can get it.
std::string StepNotes(const StepWindow& step) {
  const auto timed = std::count_if(step.slices.begin(), step.slices.end(),
                                   [](const CallSlice& slice) { return slice.length_ms >= 0; });
  std::string notes;
  if (timed < std::ssize(step.slices))
    notes += fmt::format(
        "{} of {} calls have a time; of the others only the issue is drawn. DYNAMICCL_TIMES=all times every "
        "call. ",
        timed, step.slices.size());
  if (step.hidden_lanes > 0) notes += fmt::format("{} more ranks are not drawn. ", step.hidden_lanes);
  return notes;
}

}  // namespace

HtmlSection TraceSectionHtml(const NamedTrace& trace) {
  const TraceSummary summary = SummarizeTrace(trace.trace);
  const std::string decisions =
      summary.decisions.empty() ? "" : "<h3>Decisions</h3>\n" + DecisionTable(summary);
  return {"", "Trace " + std::filesystem::path(trace.path).filename().string(),
          OverviewHtml(summary) + decisions};
}

HtmlSection RunOverview(const RunReport& run) {
  return {"", "Calls", OverviewHtml(run.summary)};
}

HtmlSection RunsSideBySide(const std::vector<RunReport>& runs) {
  HtmlTable table({{"run"},
                   {"processes", true},
                   {"calls", true},
                   {"step", true},
                   {"time per sample of a rank"},
                   {"whole run", true},
                   {"versions", true},
                   {"decided by"}});
  for (const RunReport& run : runs) {
    table.AddRow({run.name, std::to_string(run.summary.sections), std::to_string(run.summary.calls),
                  StepText(run), SampleText(run), fmt::format("{:.4g} s", run.length_ms / 1000),
                  std::to_string(run.versions.size()), DecidersText(run)});
  }
  const char* const more =
      "Runs made one after the other differ by noise as well; `dynamiccl pilot` runs them in turns and says "
      "how much.";
  return {"", "Runs", table.Html() + (runs.size() > 1 ? HtmlParagraph(more) : "")};
}

HtmlSection StageFingerprints(const std::vector<RunReport>& runs) {
  const bool a_step = AllRows(
      runs, [](const StageRow& row, const StageAccount& stages) { return stages.steps.contains(row.stage); });
  const auto bytes =
      BarsOf(runs, a_step, [](const StageRow& row) { return static_cast<double>(row.bytes) / (1 << 20); });
  const auto calls = BarsOf(runs, a_step, [](const StageRow& row) { return static_cast<double>(row.calls); });
  std::string notes;
  if (!a_step) notes = "Not all calls belong to a marked step: shares, and counts of the whole run. ";
  const bool labelled = AllRows(
      runs, [](const StageRow& row, const StageAccount&) { return row.stage != ZeroStage::kUnknown; });
  if (!labelled)
    notes +=
        "Unlabelled: neither did the program say its ZeRO stage (src/annotate/phase_marker.h shows how it "
        "can), nor was it "
        "recognised. ";
  for (const RunReport& run : runs) {
    if (!run.recognised_by.empty())
      notes +=
          fmt::format("Stages and roles of {} are those that {} recognises. ", run.name, run.recognised_by);
  }
  return {"", "Fingerprints by stage",
          HtmlParagraph(notes) + "<div class=\"charts\">\n" +
              StackedBars(a_step ? "Bytes a step" : "Share of bytes", bytes, a_step ? "MiB" : "%") +
              StackedBars(a_step ? "Calls a step" : "Share of calls", calls, a_step ? "calls" : "%") +
              "</div>\n" + StageTable(runs, a_step)};
}

HtmlSection Timeline(const RunReport& run) {
  TimeColumns columns = ColumnsOf(run.over_time);
  for (const TableVersion& version : run.versions)
    columns.marks.emplace_back(static_cast<double>(version.since_ns) * 1e-6,
                               fmt::format("v{}", version.version));
  const std::string charts =
      ColumnsOverTime(
          "Bytes over the run" + std::string(columns.marks.empty() ? "" : ", and new table versions"),
          columns) +
      StepChart(run.step);
  return {"", "Timeline",
          (charts.empty() ? HtmlParagraph("Fewer than two calls: nothing to draw.")
                          : "<div class=\"charts\">\n" + charts + "</div>\n") +
              HtmlParagraph(StepNotes(run.step) +
                            "For a timeline to zoom in: dynamiccl trace export FILE --to chrome "
                            "-o timeline.json, opened in Perfetto.")};
}

HtmlSection DecisionsMade(const RunReport& run) {
  std::map<Collective, std::map<DecidedBy, int64_t>> counts;
  for (const RunKeyAccount& account : run.keys) {
    for (const auto& [by, calls] : account.decided) counts[account.key.collective][by] += calls;
  }
  std::vector<Bar> bars;
  for (const auto& [collective, by_decider] : counts) {
    Bar bar{std::string(Name(collective)), {}};
    for (const auto& [by, calls] : by_decider)
      bar.parts.push_back({std::string(Name(by)), static_cast<double>(calls)});
    bars.push_back(std::move(bar));
  }
  const std::string title = "Decisions, and who made them";
  if (bars.empty()) {
    return {"", title,
            HtmlParagraph(
                "NCCL asked nobody: no tuner was loaded, and every choice was its own. With a policy "
                "(dynamiccl record -o run.ctrace --policy p.dcpolicy -- PROGRAM) the answers stand here.")};
  }
  return {"", title,
          HtmlParagraph(DecidersText(run) + ".") + "<div class=\"charts\">\n" +
              StackedBars("Answers to NCCL, by who decided", bars, "calls") + "</div>\n" +
              DecisionTable(run.summary)};
}

}  // namespace dynamiccl
