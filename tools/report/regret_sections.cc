// SPDX-License-Identifier: Apache-2.0
// The sections of the report about what choices cost: the regret, NCCL's default compared with DynamICCL's
// choices, and maps of choices.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "src/collective/size_class.h"
#include "tools/report/policy_choices.h"
#include "tools/report/run_report.h"
#include "tools/report/svg_chart.h"

namespace dynamiccl {
namespace {

constexpr const char* kLeftToNccl = "left to NCCL";

std::string Microseconds(const Timing& timing) {
  if (timing.repeats == 0) return "";
  return fmt::format("{:.{}f}", timing.median, timing.median < 100 ? 1 : 0);
}

std::string Percent(double share) {
  return fmt::format("{:+.1f} %", 100 * share);
}

std::string ShapeName(const RunKey& key) {
  return fmt::format("{} ranks, {} {}", key.n_ranks, key.n_nodes, key.n_nodes == 1 ? "node" : "nodes");
}

// ---- regret ----

std::string RegretSummary(const Regret& regret) {
  if (regret.counted_calls == 0) {
    return HtmlParagraph(fmt::format(
        "On {}: none of the {} calls is of a size and config that the sweep measured; `dynamiccl sweep "
        "--sizes` takes the run's own sizes.",
        regret.topology, regret.calls));
  }
  return HtmlParagraph(fmt::format(
      "On {}: {} of {} calls are of measured sizes. With the choices of this run they take {:.4g} ms a rank, "
      "{} against "
      "the best of the sweep; with the library's own choices {:.4g} ms, {} against the best.",
      regret.topology, regret.counted_calls, regret.calls, 1e3 * regret.chosen_s,
      Percent(regret.RegretShare()), 1e3 * regret.default_s, Percent(regret.DefaultRegretShare())));
}

std::string EmphasisOf(const RegretRow& row) {
  const double ratio = row.chosen.microseconds.median / row.by_default.microseconds.median;
  if (!ClearlyDiffer(row.by_default.microseconds, row.chosen.microseconds)) return "";
  return ratio < 1 ? "win" : "loss";
}

std::string RegretTableHtml(const Regret& regret) {
  HtmlTable table({{"collective"},
                   {"bytes", true},
                   {"calls", true},
                   {"default"},
                   {"us", true},
                   {"this run, mostly"},
                   {"us", true},
                   {"best"},
                   {"us", true},
                   {"regret", true}});
  for (const RegretRow& row : regret.rows) {
    const double over = row.chosen.microseconds.median / row.best.microseconds.median - 1;
    table.AddRow(
        {std::string(Name(row.key.collective)), FormatBytes(row.key.bytes), std::to_string(row.calls),
         Name(row.by_default.config), Microseconds(row.by_default.microseconds), Name(row.chosen.config),
         Microseconds(row.chosen.microseconds), Name(row.best.config), Microseconds(row.best.microseconds),
         ClearlyDiffer(row.best.microseconds, row.chosen.microseconds) ? Percent(over) : "noise"},
        EmphasisOf(row));
  }
  return table.empty() ? "" : table.Html();
}

// ---- NCCL's default compared with DynamICCL's choices ----

std::string DifferenceText(const RunKeyAccount& account) {
  if (!ClearlyDiffer(account.default_us, account.ours_us)) return "noise";
  return Percent(account.ours_us.median / account.default_us.median - 1);
}

// Returns the config that most of the key's calls got, not counting calls that were left to NCCL. The report
// shows it beside `ours_us`, the times of all calls with a choice of DynamICCL.
std::string OursOf(const RunKeyAccount& account) {
  CollectiveConfig ours;
  int64_t most = 0;
  for (const auto& [config, calls] : account.configs) {
    if (config.leaves_nccl_alone() || calls <= most) continue;
    ours = config;
    most = calls;
  }
  return Name(ours);
}

std::string TimedInRun(const RunReport& run) {
  HtmlTable table({{"communicator"},
                   {"collective"},
                   {"bytes", true},
                   {"ours"},
                   {"timed calls", true},
                   {"us", true},
                   {"left to NCCL, timed", true},
                   {"us", true},
                   {"ours against it", true}});
  for (const RunKeyAccount& account : run.keys) {
    if (account.default_us.repeats == 0 || account.ours_us.repeats == 0) continue;
    const bool clear = ClearlyDiffer(account.default_us, account.ours_us);
    const bool faster = account.ours_us.median < account.default_us.median;
    table.AddRow({ShapeName(account.key), std::string(Name(account.key.collective)),
                  FormatBytes(account.key.bytes), OursOf(account), std::to_string(account.ours_us.repeats),
                  Microseconds(account.ours_us), std::to_string(account.default_us.repeats),
                  Microseconds(account.default_us), DifferenceText(account)},
                 !clear   ? ""
                 : faster ? "win"
                          : "loss");
  }
  return table.empty() ? "" : table.Html();
}

std::vector<ChartSeries> SeriesOf(const Regret& regret, Collective collective) {
  ChartSeries by_default{"default", "default", {}};
  ChartSeries ours{"this run", "ours", {}};
  ChartSeries best{"best of sweep", "best", {}};
  const auto point = [](const RegretRow& row, const Timing& timing) {
    return ChartPoint{static_cast<double>(row.key.bytes), timing.median, 0, 0};
  };
  for (const RegretRow& row : regret.rows) {
    if (row.key.collective != collective) continue;
    by_default.points.push_back(point(row, row.by_default.microseconds));
    ours.points.push_back(point(row, row.chosen.microseconds));
    best.points.push_back(point(row, row.best.microseconds));
  }
  return {by_default, best, ours};
}

std::string ChartsOf(const Regret& regret) {
  std::set<Collective> collectives;
  for (const RegretRow& row : regret.rows) collectives.insert(row.key.collective);
  std::string charts;
  for (const Collective collective : collectives)
    charts += SizeTimeChart(fmt::format("{} on {}", Name(collective), regret.topology),
                            SeriesOf(regret, collective));
  return charts.empty() ? "" : "<div class=\"charts\">\n" + charts + "</div>\n";
}

// ---- Maps: the config that is chosen for each size and number of ranks ----

// Sizes of the columns in a map of choices, as powers of two from the smallest to the largest.
struct Octaves {
  int first = 63;
  int last = 0;

  void Include(uint64_t bytes) {
    const int octave = bytes == 0 ? 0 : 63 - std::countl_zero(bytes);
    first = std::min(first, octave);
    last = std::max(last, octave);
  }
  size_t ColumnOf(uint64_t bytes) const {
    return static_cast<size_t>((bytes == 0 ? 0 : 63 - std::countl_zero(bytes)) - first);
  }
  std::vector<std::string> Labels() const {
    std::vector<std::string> labels;
    for (int octave = first; octave <= last; ++octave) labels.push_back(FormatBytes(uint64_t{1} << octave));
    return labels;
  }
};

ChartMapCell CellOf(const CollectiveConfig& config, uint64_t bytes, const std::string& why) {
  const std::string choice = config.leaves_nccl_alone()
                                 ? kLeftToNccl
                                 : fmt::format("{} {}", Name(config.algorithm), Name(config.protocol));
  const std::string mark =
      config.leaves_nccl_alone() || config.channels == 0 ? "" : std::to_string(config.channels);
  return {choice, mark, fmt::format("{}: {}{}", FormatBytes(bytes), Name(config), why)};
}

// The rows of the map for one collective. The key is (ranks, nodes).
using MapRows = std::map<std::pair<int, int>, ChartMapRow>;

ChartMapRow& RowOf(MapRows& rows, int n_ranks, int n_nodes, size_t columns) {
  ChartMapRow& row = rows[{n_ranks, n_nodes}];
  row.name = n_nodes == 1 ? fmt::format("{} ranks", n_ranks) : fmt::format("{} on {}", n_ranks, n_nodes);
  row.cells.resize(columns);
  return row;
}

std::string MapOf(const std::string& caption, const Octaves& octaves, MapRows& rows) {
  std::vector<ChartMapRow> list;
  for (auto& [shape, row] : rows) list.push_back(std::move(row));
  return ChoiceMapChart(caption, octaves.Labels(), list, kLeftToNccl);
}

constexpr const char* kHowToRead =
    "A row for each number of ranks (\"16 on 2\": on two nodes), a column an octave of bytes, the number "
    "inside is the "
    "channels, grey is left to NCCL, empty did not occur.";

Octaves OctavesOf(const std::vector<RunKeyAccount>& keys) {
  Octaves octaves;
  for (const RunKeyAccount& account : keys) {
    if (account.decided_any()) octaves.Include(account.key.bytes);
  }
  return octaves;
}

std::string ChoicesByPolicy(const std::vector<PolicyChoice>& choices) {
  std::string charts;
  for (int i = 0; i < kTunableCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    Octaves octaves;
    MapRows rows;
    for (const PolicyChoice& each : choices) octaves.Include(each.bytes);
    for (const PolicyChoice& each : choices) {
      if (each.collective != collective) continue;
      ChartMapRow& row = RowOf(rows, each.n_ranks, each.n_nodes, octaves.Labels().size());
      row.cells[octaves.ColumnOf(each.bytes)] =
          CellOf(each.choice.config, each.bytes, fmt::format(" ({})", ReasonText(each.choice.reason)));
    }
    charts += MapOf(std::string(Name(collective)), octaves, rows);
  }
  return "<div class=\"charts\">\n" + charts + "</div>\n";
}

}  // namespace

HtmlSection RegretOfRun(const RunReport& run) {
  std::string html;
  if (run.regrets.size() > 1) {
    html = HtmlParagraph(
        "Several fabrics of the sweep have this run's ranks and nodes; name its own with --topology NAME.");
  }
  for (const Regret& regret : run.regrets) html += RegretSummary(regret);
  if (run.regrets.size() == 1) html += RegretTableHtml(run.regrets.front());
  if (html.empty()) {
    html = HtmlParagraph(
        "Not known: no sweep of this run's ranks and nodes is among the inputs, so nobody knows what its "
        "other "
        "configs would have taken. Measure them with `dynamiccl sweep -o run.measurements` (on hostccl with "
        "the "
        "run's --topology and -g its ranks; on GPUs under the job's launcher) and give the file to "
        "`dynamiccl "
        "report` too.");
  }
  return {"", "Regret", html};
}

HtmlSection DefaultAgainstOurs(const RunReport& run) {
  std::string html;
  if (run.regrets.size() == 1) html += ChartsOf(run.regrets.front());
  const std::string timed = TimedInRun(run);
  if (!timed.empty())
    html +=
        "<h4>Timed in the run itself</h4>\n" +
        HtmlParagraph(
            "Medians of this rank's timed calls; a rank that comes early waits inside the call, so means of "
            "both are upper bounds. Where the quartile ranges touch, the difference is called noise.") +
        timed;
  else
    html += HtmlParagraph(
        "No key was timed both ways in the run itself. Mode adaptive does that (DYNAMICCL_MODE=adaptive, or "
        "DYNAMICCL_TIMES=all with a policy whose first calls are left to NCCL); `dynamiccl pilot` compares "
        "whole runs.");
  return {"", "Default against ours", html};
}

HtmlSection ChoicesOverSizes(const RunReport& run) {
  const Octaves octaves = OctavesOf(run.keys);
  std::map<Collective, MapRows> maps;
  for (const RunKeyAccount& account : run.keys) {
    if (!account.decided_any()) continue;
    ChartMapRow& row = RowOf(maps[account.key.collective], account.key.n_ranks, account.key.n_nodes,
                             octaves.Labels().size());
    row.cells[octaves.ColumnOf(account.key.bytes)] =
        CellOf(account.choice, account.key.bytes, fmt::format(", {} calls", account.calls));
  }
  const std::string title = "Choices over size and ranks";
  if (maps.empty()) {
    return {"", title,
            HtmlParagraph("Nothing was decided in this run. Give a policy (p.dcpolicy) to `dynamiccl report` "
                          "to see what it "
                          "would choose, or `dynamiccl inspect p.dcpolicy`.")};
  }
  std::string charts;
  for (auto& [collective, rows] : maps) charts += MapOf(std::string(Name(collective)), octaves, rows);
  return {"", title, HtmlParagraph(kHowToRead) + "<div class=\"charts\">\n" + charts + "</div>\n"};
}

HtmlSection PolicyMap(const NamedPolicy& policy, const std::vector<NamedMeasurements>& measurements) {
  std::vector<MeasurementContext> fabrics;
  for (const NamedMeasurements& sweep : measurements)
    fabrics.insert(fabrics.end(), sweep.file.contexts.begin(), sweep.file.contexts.end());
  const bool measured = !fabrics.empty();
  if (!measured) fabrics = HopperClusters();
  std::string html;
  std::vector<PolicyChoice> together;
  for (const MeasurementContext& fabric : fabrics) {
    std::vector<PolicyChoice> choices = ChoicesOn(*policy.policy, fabric);
    if (measured)
      html += fmt::format("<h3>{}</h3>\n", EscapeHtml(fabric.topology)) + ChoicesByPolicy(choices);
    else
      together.insert(together.end(), choices.begin(), choices.end());
  }
  if (!measured) html = ChoicesByPolicy(together);
  const char* const where = measured
                                ? "On the fabrics of the sweep. "
                                : "On clusters with NCCL's constants for Hopper, eight ranks a node; give a "
                                  ".measurements file for your own fabric. ";
  return {"", "What policy " + std::filesystem::path(policy.path).filename().string() + " would choose",
          HtmlParagraph(std::string(where) + kHowToRead) + html};
}

}  // namespace dynamiccl
