// SPDX-License-Identifier: Apache-2.0
// The sections of the page about a demo, in the order in which a reader asks: the findings, the choices, the
// gain, whether the losses of the training stayed equal, and where the numbers come from.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "src/collective/size_class.h"
#include "tools/report/report.h"
#include "tools/report/svg_chart.h"

namespace dynamiccl {
namespace {

// The median and half of the distance between the quartiles, "123 us ±4", so that the table fits a screen. A
// single repeat has no spread.
std::string TimeText(const Timing& timing, const char* unit) {
  if (timing.repeats == 0) return "not measured";
  const double noise = (timing.high - timing.low) / 2;
  const int digits = timing.median < 10 ? 2 : timing.median < 100 ? 1 : 0;
  if (timing.repeats == 1) return fmt::format("{:.{}f} {}", timing.median, digits, unit);
  return fmt::format("{:.{}f} {} \u00b1{:.{}f}", timing.median, digits, unit, noise, digits);
}

// Change of a time in percent: "-12 %", "+3 %", or "noise" if the quartile ranges of the two times touch.
std::string Difference(const Timing& reference, const Timing& timing) {
  if (reference.repeats == 0 || timing.repeats == 0) return "";
  if (!ClearlyDiffer(reference, timing)) return "noise";
  return fmt::format("{:+.0f} %", 100 * (timing.median / reference.median - 1));
}

// CSS class of a table row: "win" or "loss" if the times clearly differ, else none.
std::string Emphasis(const Timing& reference, const Timing& timing) {
  if (!ClearlyDiffer(reference, timing)) return "";
  return timing.median < reference.median ? "win" : "loss";
}

void AddChoiceRow(HtmlTable& table, const ChoiceRow& row) {
  table.AddRow({row.stage < 0 ? "" : std::to_string(row.stage), row.collective, FormatBytes(row.bytes),
                row.calls_per_step > 0 ? fmt::format("{:.3g}", row.calls_per_step) : "", row.default_config,
                TimeText(row.default_us, "us"), row.our_config, TimeText(row.our_us, "us"),
                Difference(row.default_us, row.our_us), row.best_config, TimeText(row.best_us, "us"),
                Difference(row.default_us, row.best_us), row.topology},
               Emphasis(row.default_us, row.our_us));
}

using RowFilter = bool (*)(const ChoiceRow&);

// A table of the demo's compared choices that `filter` accepts, or "None.".
std::string ChoiceTable(const DemoResult& demo, RowFilter filter) {
  HtmlTable table({{"stage"},
                   {"collective"},
                   {"bytes", true},
                   {"calls a step", true},
                   {"default"},
                   {"time", true},
                   {"ours"},
                   {"time", true},
                   {"against default", true},
                   {"best of sweep"},
                   {"time", true},
                   {"against default", true},
                   {"topology"}});
  for (const ChoiceRow& row : demo.choices) {
    if (filter(row)) AddChoiceRow(table, row);
  }
  return table.empty() ? HtmlParagraph("None.") : table.Html();
}

HtmlSection Summary(const DemoResult& demo) {
  return {"", "What was found", HtmlList(demo.findings)};
}

HtmlSection Choices(const DemoResult& demo) {
  const auto seen = [](const ChoiceRow& row) { return !row.size_held_out && !row.topology_held_out; };
  const auto size_held_out = [](const ChoiceRow& row) { return row.size_held_out && !row.topology_held_out; };
  const auto topology_held_out = [](const ChoiceRow& row) { return row.topology_held_out; };
  return {"", "Choices",
          HtmlParagraph("Times are medians and half of the distance between the quartiles. The best of the "
                        "sweep was picked on one half of the repeats; "
                        "all times are of the other half. Where the quartile ranges touch, the difference is "
                        "called noise.") +
              "<h3>Sizes that the agents saw</h3>\n" + ChoiceTable(demo, seen) +
              "<h3>Size classes held out</h3>\n" + ChoiceTable(demo, size_held_out) +
              "<h3>Topology held out</h3>\n" + ChoiceTable(demo, topology_held_out)};
}

// Change of the step time against the default with its 95 % interval, "-4.2 % (-6.0 to -2.1)". Empty for the
// default itself, and if the ratio is not known.
std::string AgainstDefault(const StepTimeRow& row) {
  if (row.ratio == 0) return "";
  const auto percent = [](double ratio) { return 100 * (ratio - 1); };
  if (row.high == 0) return fmt::format("{:+.1f} %, too few rounds", percent(row.ratio));
  return fmt::format("{:+.1f} % ({:+.1f} to {:+.1f})", percent(row.ratio), percent(row.low),
                     percent(row.high));
}

HtmlSection StepTimes(const DemoResult& demo) {
  HtmlTable table({{"stage"}, {"arm"}, {"step time", true}, {"turns", true}, {"against default", true}});
  for (const StepTimeRow& row : demo.step_times)
    table.AddRow({std::to_string(row.stage), row.arm, TimeText(row.milliseconds, "ms"),
                  std::to_string(row.milliseconds.repeats), AgainstDefault(row)},
                 !row.differs() ? ""
                 : row.high < 1 ? "win"
                                : "loss");
  return {"", "Step times",
          HtmlParagraph(
              "The three arms took turns of a few steps within one run, so that a change of the machine hits "
              "all of them. In brackets the 95 % interval (Wilcoxon's signed-rank test over the rounds).") +
              table.Html()};
}

HtmlSection Losses(const DemoResult& demo) {
  HtmlTable table(
      {{"stage"}, {"arm"}, {"steps", true}, {"first loss", true}, {"last loss", true}, {"against default"}});
  for (const LossRow& row : demo.losses) {
    const std::string difference =
        row.bitwise_equal ? "bitwise equal"
                          : fmt::format("largest relative difference {:.1e}, tolerance {:.0e}: {}",
                                        row.largest_relative_difference, row.tolerance,
                                        row.equal() ? "equal" : "NOT EQUAL");
    table.AddRow({std::to_string(row.stage), row.arm, std::to_string(row.steps),
                  fmt::format("{:.4f}", row.first_loss), fmt::format("{:.4f}", row.last_loss), difference},
                 row.equal() ? "" : "loss");
  }
  return {"", "Losses", table.Html()};
}

// Mean step time in milliseconds of the run with this setting (arm) on this fabric; 0 if the run is missing.
double MeanOf(const DemoResult& demo, const std::string& fabric, const std::string& arm) {
  for (const WholeRunRow& row : demo.whole_runs) {
    if (row.fabric == fabric && row.arm == arm) return row.mean_ms;
  }
  return 0;
}

std::string CurvesOn(const DemoResult& demo, const std::string& fabric) {
  std::vector<ChartSeries> series;
  for (const WholeRunRow& row : demo.whole_runs) {
    if (row.fabric != fabric) continue;
    ChartSeries line{row.arm, "", {}};
    const double steps =
        static_cast<double>(row.steps) / static_cast<double>(std::max<size_t>(1, row.curve_ms.size()));
    for (size_t i = 0; i < row.curve_ms.size(); ++i)
      line.points.push_back({(static_cast<double>(i) + 0.5) * steps, row.curve_ms[i], 0, 0});
    series.push_back(std::move(line));
  }
  return StepCurves("Step time over the run, " + fabric, series);
}

HtmlSection WholeRuns(const DemoResult& demo) {
  HtmlTable table({{"fabric"},
                   {"arm"},
                   {"steps", true},
                   {"mean step", true},
                   {"against default", true},
                   {"last fifth", true}});
  std::vector<std::string> fabrics;
  for (const WholeRunRow& row : demo.whole_runs) {
    const double usual = MeanOf(demo, row.fabric, "default");
    table.AddRow({row.fabric, row.arm, std::to_string(row.steps), fmt::format("{:.1f} ms", row.mean_ms),
                  usual > 0 ? fmt::format("{:+.1f} %", 100 * (row.mean_ms / usual - 1)) : "",
                  fmt::format("{:.1f} ms", row.end_ms)});
    if (fabrics.empty() || fabrics.back() != row.fabric) fabrics.push_back(row.fabric);
  }
  std::string charts = "<div class=\"charts\">\n";
  for (const std::string& fabric : fabrics) charts += CurvesOn(demo, fabric);
  return {"", "Whole runs that learn as they go",
          HtmlParagraph("Two ranks, stage 3. Mode adaptive begins with the shipped policy and no knowledge "
                        "of the fabric; its second run has what the first "
                        "one left in a site store. How far the two default runs lie apart is the noise.") +
              table.Html() + charts + "</div>\n"};
}

HtmlSection Recognition(const DemoResult& demo) {
  HtmlTable table({{"true stage"},
                   {"as 0", true},
                   {"as 1", true},
                   {"as 2", true},
                   {"as 3", true},
                   {"unknown", true},
                   {"right", true}});
  for (const RecognitionRow& row : demo.recognition) {
    int64_t total = 0;
    for (const int64_t calls : row.recognised) total += calls;
    std::vector<std::string> cells{std::to_string(row.true_stage)};
    for (const int64_t calls : row.recognised) cells.push_back(std::to_string(calls));
    // The row has the true ZeRO stage and five columns of recognised stages. Missing counts stay empty.
    cells.resize(6);
    const auto stage = static_cast<size_t>(row.true_stage);
    const int64_t right = stage < row.recognised.size() ? row.recognised[stage] : 0;
    cells.push_back(total == 0 ? ""
                               : fmt::format("{:.1f} %", 100.0 * static_cast<double>(right) /
                                                             static_cast<double>(total)));
    table.AddRow(std::move(cells));
  }
  return {"", "Recognised stage against the true one",
          HtmlParagraph(
              "Calls of the evaluated runs: a model width, bucket size and seed that training never saw.") +
              table.Html()};
}

HtmlSection Fingerprints(const DemoResult& demo) {
  std::map<int, Bar> bytes;
  std::map<int, Bar> calls;
  for (const FingerprintRow& row : demo.fingerprints) {
    const std::string name = fmt::format("stage {}", row.stage);
    bytes[row.stage].name = calls[row.stage].name = name;
    bytes[row.stage].parts.push_back({row.collective, row.bytes_per_step / (1 << 20)});
    calls[row.stage].parts.push_back({row.collective, row.calls_per_step});
  }
  const auto list = [](const std::map<int, Bar>& bars) {
    std::vector<Bar> listed;
    for (const auto& [stage, bar] : bars) listed.push_back(bar);
    return listed;
  };
  return {"", "Fingerprints of the stages",
          "<div class=\"charts\">\n" + StackedBars("Bytes a step", list(bytes), "MiB") +
              StackedBars("Calls a step", list(calls), "calls") + "</div>\n"};
}

HtmlSection Decisions(const DemoResult& demo) {
  HtmlTable table({{"stage"}, {"decided by"}, {"choice"}, {"calls", true}});
  for (const DecisionCount& row : demo.decisions) {
    table.AddRow({std::to_string(row.stage), row.decided_by, row.config, std::to_string(row.calls)});
  }
  return {"", "Decisions and who made them", table.Html()};
}

HtmlSection Imported(const DemoResult& demo) {
  HtmlTable table({{"trace"}, {"collective"}, {"calls", true}, {"bytes", true}, {"recorded time", true}});
  for (const ImportedRow& row : demo.imported) {
    table.AddRow({row.source, row.collective, std::to_string(row.calls), FormatBytes(row.bytes),
                  row.recorded_us > 0 ? fmt::format("{:.0f} us", row.recorded_us) : "not recorded"});
  }
  return {"", "A public trace of another job, imported", table.Html()};
}

HtmlSection Provenance(const DemoResult& demo) {
  HtmlTable table({{"what"}, {"value"}});
  table.AddRow({"created", demo.created});
  for (const NamedText& row : demo.provenance) table.AddRow({row.name, row.text});
  return {"", "Where these numbers come from", table.Html()};
}

}  // namespace

std::vector<HtmlSection> DemoSections(const DemoResult& demo) {
  std::vector<HtmlSection> sections{Summary(demo),     Choices(demo),      StepTimes(demo), Losses(demo),
                                    Recognition(demo), Fingerprints(demo), Decisions(demo)};
  if (!demo.whole_runs.empty()) sections.insert(sections.begin() + 1, WholeRuns(demo));
  if (!demo.imported.empty()) sections.push_back(Imported(demo));
  sections.push_back(Provenance(demo));
  return sections;
}

}  // namespace dynamiccl
