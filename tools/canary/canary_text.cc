// SPDX-License-Identifier: Apache-2.0
#include "tools/canary/canary_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "src/collective/size_class.h"
#include "tools/canary/cell_json.h"

namespace dynamiccl {
namespace {

constexpr size_t kMostChoices = 8;

std::string WorldText(const std::vector<int>& ranks_of_nodes) {
  const bool even =
      std::ranges::adjacent_find(ranks_of_nodes, std::ranges::not_equal_to{}) == ranks_of_nodes.end();
  if (even) return fmt::format("{}x{}", ranks_of_nodes.size(), ranks_of_nodes.front());
  return fmt::format("{} ranks", fmt::join(ranks_of_nodes, " + "));
}

std::string Upper(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return text;
}

std::string Line(const char* label, const std::string& subject, const std::string& text) {
  return fmt::format("  {:<7} {:<11} {}\n", label, subject, text);
}

std::string FormatDifference(const Difference& one, const std::string& when) {
  const std::string of = one.where.empty() ? "" : fmt::format("{}, {}: ", one.where, one.collectives);
  std::string text = Line(one.gravity == Gravity::kGrave ? "grave" : "notice", Name(one.kind),
                          fmt::format("{}{} -> {}{}", of, one.before, one.after, when));
  if (!one.note.empty()) text += Line("", "", one.note);
  return text;
}

std::string FormatDifferences(const JudgedRelease& judged) {
  std::string text;
  size_t choices = 0;
  for (const JudgedCell& cell : judged.cells) {
    const bool one_of_two = judged.cells.size() > 1 && cell.connecting == Connecting::kAtInit;
    const std::string when = one_of_two ? " (when ranks connect at init)" : "";
    for (const Difference& one : cell.differences) {
      if (one.kind == DifferenceKind::kChoice && ++choices > kMostChoices) continue;
      text += FormatDifference(one, when);
    }
  }
  if (choices > kMostChoices)
    text += Line("", "", fmt::format("and {} choices more (--json)", choices - kMostChoices));
  return text;
}

// True if the releases reach or use the machine otherwise, which their tables show.
bool UsesOtherPaths(const JudgedRelease& judged) {
  return std::ranges::any_of(judged.cells.front().differences, [](const Difference& one) {
    return one.kind != DifferenceKind::kChoice && one.kind != DifferenceKind::kEnd;
  });
}

std::vector<std::string> EffectLines(const CanaryAnswer& answer, const JudgedRelease& judged) {
  const TrafficEffect& effect = *judged.effect;
  const std::string old = answer.in_use.text(), now = judged.library.text();
  std::vector<std::string> lines;
  if (effect.calls_with_other_pair > 0)
    lines.push_back(
        fmt::format("another algorithm or protocol for {} of {} calls; all of them take {:.2f} of the time "
                    "by the table of "
                    "{}, {:.2f} by {}'s",
                    effect.calls_with_other_pair, effect.calls, effect.by_before, old, effect.by_after, now));
  if (effect.calls_with_other_channels > 0)
    lines.push_back(fmt::format("other channel counts alone for {} of {} calls, which no table prices",
                                effect.calls_with_other_channels, effect.calls));
  if (lines.empty() && effect.calls > 0)
    lines.push_back(fmt::format("the same choices for all {} calls", effect.calls));
  if (effect.calls > 0 && UsesOtherPaths(judged))
    lines.push_back(
        fmt::format("{:.3g} ms by {}'s own table, {:.3g} ms by {}'s; the tables may be calibrated apart",
                    effect.own_us_before / 1000, old, effect.own_us_after / 1000, now));
  if (effect.calls_unpriced > 0)
    lines.push_back(fmt::format("{} calls without a price in both tables", effect.calls_unpriced));
  return lines;
}

std::string FormatEffect(const CanaryAnswer& answer, const JudgedRelease& judged) {
  if (!judged.effect) return "";
  std::string text;
  for (const std::string& line : EffectLines(answer, judged))
    text += Line(text.empty() ? "traffic" : "", "", line);
  return text;
}

// Returns lines that say how many of the job's calls are judged, and which calls and communicators are not.
std::string FormatTraffic(const Traffic& traffic) {
  std::string text =
      fmt::format("traffic: {} calls of a rank among {} ranks, {} kinds by collective and size\n",
                  traffic.calls, traffic.ranks, traffic.classes.size());
  if (traffic.calls_left_out > 0)
    text +=
        fmt::format("  not judged: {} calls of further sizes, with fewer bytes\n", traffic.calls_left_out);
  for (const std::string& other : traffic.other_communicators)
    text += fmt::format("  not judged: communicators of another size: {}\n", other);
  if (traffic.calls_without_choice > 0)
    text +=
        fmt::format("  not judged: {} calls for which NCCL chooses no algorithm (Send, Recv and others)\n",
                    traffic.calls_without_choice);
  return text;
}

std::string FormatBisection(const JudgedRelease& judged) {
  if (!judged.bisected) return "";
  if (!judged.first_with)
    return Line("since", "", "not looked for: both releases must be in the cache, the one in use the older");
  std::string text =
      fmt::format("{}; {} is free of it", judged.first_with->text(), judged.last_without->text());
  text += judged.free_again ? fmt::format("; free again from {}", judged.free_again->text())
                            : "; no newer release of the cache is free of it";
  return Line("since", "", text);
}

std::string FormatRemedies(const JudgedRelease& judged) {
  std::string text;
  for (const Remedy& remedy : judged.remedies)
    text += Line("remedy", "", fmt::format("{}={} ends it", remedy.variable, remedy.value));
  if (text.empty() && !judged.tried.empty())
    text = Line("remedy", "", fmt::format("none found; tried {}", fmt::join(judged.tried, ", ")));
  for (const KnownIssue& issue : judged.issues) {
    text += Line("known", "",
                 fmt::format("{}: {} ({} to {}); {}", issue.id, issue.title, issue.since.text(),
                             issue.until ? "before " + issue.until->text() : "now", issue.url));
    if (!issue.remedy.empty()) text += Line("", "", "reported to help: " + issue.remedy);
  }
  return text;
}

std::string FormatJudged(const CanaryAnswer& answer, const JudgedRelease& judged) {
  if (!judged.problem.empty()) {
    return fmt::format("NCCL {} -> {}: no verdict\n  {}\n", answer.in_use.text(), judged.library.text(),
                       judged.problem);
  }
  return fmt::format("NCCL {} -> {}: {}\n", answer.in_use.text(), judged.library.text(),
                     Upper(Name(judged.verdict))) +
         FormatDifferences(judged) + FormatEffect(answer, judged) + FormatBisection(judged) +
         FormatRemedies(judged);
}

std::string GraphCell(const Cell& cell, Algorithm algorithm) {
  const auto found = cell.graphs.find(std::string(Name(algorithm)));
  if (found == cell.graphs.end()) return "-";
  const CellGraph& graph = found->second;
  return fmt::format("{} x {:g}", graph.channels,
                     graph.adapters.empty() ? graph.intra_gbps : graph.inter_gbps);
}

std::string LargestChoice(const Cell& cell, Collective collective) {
  const CellChoice* largest = nullptr;
  for (const CellChoice& one : cell.choices) {
    if (one.collective == collective && (largest == nullptr || one.bytes > largest->bytes)) largest = &one;
  }
  if (largest == nullptr) return "-";
  return fmt::format("{}/{}/{} at {}", Name(largest->config.algorithm), Name(largest->config.protocol),
                     largest->config.channels, FormatBytes(largest->bytes));
}

std::string TableRow(const std::string& release, const JudgedCell& judged, Collective collective) {
  const Cell& cell = judged.cell;
  return fmt::format("  {:<9} {:<11} {:>6.1f} {:>9} {:>9} {:>12} {:>12}  {}\n", release,
                     cell.passed() ? "runs" : Name(cell.end), cell.seconds, cell.channels,
                     cell.adapters.size(), GraphCell(cell, Algorithm::kRing),
                     GraphCell(cell, Algorithm::kTree), LargestChoice(cell, collective));
}

std::string FormatTable(const CanaryAnswer& answer, Collective collective) {
  std::string text =
      fmt::format("\n  {:<9} {:<11} {:>6} {:>9} {:>9} {:>12} {:>12}  {}\n", "release", "outcome", "s",
                  "channels", "adapters", "ring GB/s", "tree GB/s", Name(collective));
  text += TableRow(answer.in_use.text(), answer.in_use_cells.front(), collective);
  for (const JudgedRelease& judged : answer.judged)
    text += TableRow(judged.library.text(), judged.cells.front(), collective);
  return text;
}

Json DifferencesJson(const std::vector<Difference>& differences) {
  Json all = Json::array();
  for (const Difference& one : differences) {
    all.push_back({{"kind", Name(one.kind)},
                   {"gravity", one.gravity == Gravity::kGrave ? "grave" : "notice"},
                   {"before", one.before},
                   {"after", one.after},
                   {"note", one.note},
                   {"size", one.where},
                   {"collectives", one.collectives}});
  }
  return all;
}

const char* KeyOf(Connecting connecting) {
  return connecting == Connecting::kAtInit ? "init" : "first_call";
}

Json CellsJson(const std::vector<JudgedCell>& cells) {
  Json all = Json::array();
  for (const JudgedCell& one : cells) {
    all.push_back({{"connecting", KeyOf(one.connecting)},
                   {"differences", DifferencesJson(one.differences)},
                   {"cell", CellJson(one.cell)}});
  }
  return all;
}

Json ReleaseJson(const std::optional<real_nccl::NcclRelease>& release) {
  return release ? Json(release->text()) : Json();
}

Json EffectJson(const std::optional<TrafficEffect>& effect) {
  if (!effect) return {};
  return {{"by_table_in_use", effect->by_before},
          {"by_table_judged", effect->by_after},
          {"calls", effect->calls},
          {"us_by_own_table_in_use", effect->own_us_before},
          {"us_by_own_table_judged", effect->own_us_after},
          {"calls_with_other_pair", effect->calls_with_other_pair},
          {"calls_with_other_channels", effect->calls_with_other_channels},
          {"calls_without_price", effect->calls_unpriced}};
}

Json TrafficJson(const std::optional<Traffic>& traffic) {
  if (!traffic) return {};
  Json classes = Json::array();
  for (const TrafficClass& one : traffic->classes)
    classes.push_back({{"collective", Name(one.collective)}, {"bytes", one.bytes}, {"calls", one.calls}});
  return {{"ranks", traffic->ranks},
          {"classes", classes},
          {"calls", traffic->calls},
          {"calls_left_out", traffic->calls_left_out},
          {"calls_without_choice", traffic->calls_without_choice},
          {"other_communicators", traffic->other_communicators}};
}

Json JudgedJson(const JudgedRelease& judged) {
  Json issues = Json::array(), remedies = Json::array();
  for (const KnownIssue& issue : judged.issues)
    issues.push_back(
        {{"id", issue.id}, {"title", issue.title}, {"url", issue.url}, {"remedy", issue.remedy}});
  for (const Remedy& remedy : judged.remedies)
    remedies.push_back({{"variable", remedy.variable}, {"value", remedy.value}});
  return {{"release", judged.library.text()},
          {"library", judged.library.folder},
          {"verdict", judged.problem.empty() ? Json(Name(judged.verdict)) : Json()},
          {"problem", judged.problem},
          {"cells", CellsJson(judged.cells)},
          {"traffic", EffectJson(judged.effect)},
          {"first_with", ReleaseJson(judged.first_with)},
          {"last_without", ReleaseJson(judged.last_without)},
          {"free_again", ReleaseJson(judged.free_again)},
          {"known_issues", issues},
          {"remedies", remedies},
          {"tried", judged.tried}};
}

// Runs of equal neighbours once: "dgx_h100, 3 times h100_one_nic".
std::string MachineNames(const CanaryRequest& request) {
  std::vector<std::string> names;
  for (size_t first = 0, next = 0; first < request.machines.size(); first = next) {
    const std::string& name = request.machines[first].name;
    while (next < request.machines.size() && request.machines[next].name == name) ++next;
    names.push_back(next - first > 1 ? fmt::format("{} times {}", next - first, name) : name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string NodeText(const CanaryRequest& request) {
  const DescribedMachine& first = request.machines.front();
  const std::string gpus =
      request.gpus.empty() ? "" : fmt::format(", ranks on GPUs {}", fmt::join(request.gpus, ","));
  if (request.machines.size() > 1) return "nodes that are unlike, a process each" + gpus;
  std::string text = fmt::format("{} GPUs and {} adapters a node", first.gpus, first.adapters);
  if (first.nvlink_domain_nodes > 1)
    text += fmt::format(", {} nodes an NVLink domain", first.nvlink_domain_nodes);
  return text + gpus;
}

Json NodesJson(const CanaryRequest& request) {
  Json nodes = Json::array();
  for (const DescribedMachine& one : request.machines)
    nodes.push_back({{"machine", one.name},
                     {"gpus", one.gpus},
                     {"adapters", one.adapters},
                     {"nvlink_domain_nodes", one.nvlink_domain_nodes}});
  return nodes;
}

std::vector<std::string_view> NamesOf(const std::vector<Collective>& collectives) {
  std::vector<std::string_view> names;
  for (const Collective one : collectives) names.push_back(Name(one));
  return names;
}

}  // namespace

std::string FormatCanary(const CanaryRequest& request, const CanaryAnswer& answer) {
  std::string text = fmt::format("{}, {}: {}\n", MachineNames(request), WorldText(request.ranks_of_nodes),
                                 NodeText(request));
  if (request.traffic) text += FormatTraffic(*request.traffic);
  for (const JudgedRelease& judged : answer.judged) text += FormatJudged(answer, judged);
  return text + FormatTable(answer, request.collectives.front()) +
         "\nNot judged: device code, NCCL's proxy threads, what the network does with the messages.\n";
}

Json CanaryJson(const CanaryRequest& request, const CanaryAnswer& answer) {
  Json judged = Json::array();
  for (const JudgedRelease& one : answer.judged) judged.push_back(JudgedJson(one));
  return {{"schema", 1},
          {"machine", MachineNames(request)},
          {"gpus", request.machines.front().gpus},
          {"adapters", request.machines.front().adapters},
          {"nodes", NodesJson(request)},
          {"ranks_of_nodes", request.ranks_of_nodes},
          {"gpus_of_ranks", request.gpus},
          {"collectives", NamesOf(request.collectives)},
          {"traffic", TrafficJson(request.traffic)},
          {"in_use",
           {{"release", answer.in_use.text()},
            {"library", answer.in_use.folder},
            {"cells", CellsJson(answer.in_use_cells)}}},
          {"judged", judged}};
}

}  // namespace dynamiccl
