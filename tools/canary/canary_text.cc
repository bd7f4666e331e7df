// SPDX-License-Identifier: Apache-2.0
#include "tools/canary/canary_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "src/collective/size_class.h"

namespace dynamiccl {
namespace {

constexpr size_t kMaxChoices = 8;

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
      if (one.kind == DifferenceKind::kChoice && ++choices > kMaxChoices) continue;
      text += FormatDifference(one, when);
    }
  }
  if (choices > kMaxChoices)
    text += Line("", "", fmt::format("and {} choices more (--json)", choices - kMaxChoices));
  return text;
}

// Divides a sum over the whole trace by the number of steps. Returns the sum itself where the trace marks no
// steps.
double AStep(double all, const Traffic& traffic) {
  return traffic.steps > 0 ? all / static_cast<double>(traffic.steps) : all;
}

std::string ChangedLine(const Traffic& traffic, const TrafficEffect& effect) {
  const uint64_t changed = effect.calls_with_other_pair + effect.calls_with_other_channels;
  const char* const of_what = traffic.steps > 0 ? " a step" : "";
  const double calls = AStep(static_cast<double>(effect.calls), traffic);
  if (changed == 0)
    return fmt::format("in your trace: the same choices for all {:.4g} calls{}", calls, of_what);
  std::string text =
      fmt::format("in your trace: {:.4g} of {:.4g} calls{} change their choice, with {:.3g} % of the bytes",
                  AStep(static_cast<double>(changed), traffic), calls, of_what, 100 * effect.changed_bytes);
  if (effect.changed_time)
    text += fmt::format(" and {:.3g} % of the {} time", 100 * *effect.changed_time,
                        effect.times_are_waits ? "waited" : "recorded");
  return text;
}

std::vector<std::string> ModelLines(const Traffic& traffic, const ModelEffect& model) {
  std::vector<std::string> lines;
  if (model.us_before > 0)
    lines.push_back(fmt::format(
        "predicted communication{} {:+.1f} %: {:.3g} -> {:.3g} ms, both by the model of NCCL {}",
        traffic.steps > 0 ? " of a step" : "", 100 * (model.ratio() - 1),
        AStep(model.us_before, traffic) / 1000, AStep(model.us_after, traffic) / 1000, kModelRelease));
  if (model.step_ns_after)
    lines.push_back(fmt::format("predicted step {:+.1f} %{}: {:.4g} -> {:.4g} ms",
                                100 * (*model.step_ns_after / traffic.step_ns - 1),
                                model.knows_waits ? "" : " if it waits for all of it", traffic.step_ns / 1e6,
                                *model.step_ns_after / 1e6));
  else if (model.us_before > 0)
    lines.push_back("the trace has no times of steps, so what a step becomes is not judged");
  if (model.calls_unpriced > 0)
    lines.push_back(fmt::format("not judged: {} calls that the model does not price", model.calls_unpriced));
  return lines;
}

std::vector<std::string> EffectLines(const Traffic& traffic, const CanaryAnswer& answer,
                                     const JudgedRelease& judged) {
  const TrafficEffect& effect = *judged.effect;
  std::vector<std::string> lines;
  if (effect.calls > 0) lines.push_back(ChangedLine(traffic, effect));
  if (effect.model) {
    const std::vector<std::string> by_model = ModelLines(traffic, *effect.model);
    lines.insert(lines.end(), by_model.begin(), by_model.end());
  }
  if (effect.calls_with_other_pair > 0)
    lines.push_back(
        fmt::format("the other algorithms alone: {:.2f} of the time by the table of {}, {:.2f} by {}'s",
                    effect.by_before, answer.in_use.text(), effect.by_after, judged.library.text()));
  if (effect.calls_with_other_channels > 0)
    lines.push_back(
        fmt::format("for {} of {} calls only the channels change: the model prices those that the graph "
                    "search found, not a call's",
                    effect.calls_with_other_channels, effect.calls));
  if (effect.calls_unknown > 0)
    lines.push_back(
        fmt::format("not judged: {} calls of which a release told no choice", effect.calls_unknown));
  return lines;
}

std::string FormatEffect(const CanaryRequest& request, const CanaryAnswer& answer,
                         const JudgedRelease& judged) {
  if (!judged.effect) return "";
  std::string text;
  for (const std::string& line : EffectLines(*request.traffic, answer, judged))
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

// Returns "2.25.1 to 2.27.7" for two releases and more.
std::string RangeText(const std::vector<real_nccl::NcclRelease>& releases) {
  if (releases.size() == 1) return releases.front().text();
  return fmt::format("{} to {}", releases.front().text(), releases.back().text());
}

std::vector<std::string> TextsOf(const std::vector<real_nccl::NcclRelease>& releases) {
  std::vector<std::string> texts;
  for (const real_nccl::NcclRelease& one : releases) texts.push_back(one.text());
  return texts;
}

// Divides the releases that did not run into those before the fault's first release and those after it.
std::pair<std::vector<real_nccl::NcclRelease>, std::vector<real_nccl::NcclRelease>> Gaps(
    const Bisection& found) {
  const auto middle = std::ranges::lower_bound(found.not_looked_at, found.first_with);
  return {{found.not_looked_at.begin(), middle}, {middle, found.not_looked_at.end()}};
}

std::string PeriodText(const Bisection& found) {
  const auto [before, after] = Gaps(found);
  std::string text = fmt::format("{}{}; {} is free of it", before.empty() ? "" : "first seen in ",
                                 found.first_with.text(), found.last_without.text());
  if (!found.free_again) return text + "; no newer release of the cache is free of it";
  if (after.empty()) return text + fmt::format("; free again from {}", found.free_again->text());
  return text + fmt::format("; last seen in {}, free again in {}", found.last_with->text(),
                            found.free_again->text());
}

// Names the releases that the bisection could not judge, and how to get those that are not in the cache.
std::vector<std::string> UnjudgedLines(const Bisection& found) {
  std::vector<std::string> lines, ranges;
  const auto [before, after] = Gaps(found);
  for (const auto& gap : {before, after}) {
    if (!gap.empty()) ranges.push_back(RangeText(gap));
  }
  if (!ranges.empty()) {
    lines.push_back(
        fmt::format("not looked at: {}, which are not in the cache; to get them:", fmt::join(ranges, ", ")));
    lines.push_back(
        fmt::format("tools/setup/fetch_nccl.sh {}", fmt::join(TextsOf(found.not_looked_at), " ")));
  }
  if (!found.hidden.empty())
    lines.push_back(
        fmt::format("not judged, since they fail otherwise: {}", fmt::join(TextsOf(found.hidden), ", ")));
  return lines;
}

std::string KindsText(const std::vector<DifferenceKind>& kinds) {
  std::vector<std::string> names;
  for (const DifferenceKind kind : kinds) names.emplace_back(Name(kind));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string FormatBisection(const JudgedRelease& judged) {
  if (!judged.bisected) return "";
  if (judged.periods.empty())
    return Line("since", "", "not looked for: the release in use is not the older one");
  std::string text;
  for (const FaultPeriod& one : judged.periods) {
    const std::string of = judged.periods.size() > 1 ? KindsText(one.kinds) + ": " : "";
    text += Line("since", "", of + PeriodText(one.releases));
    for (const std::string& line : UnjudgedLines(one.releases)) text += Line("", "", line);
  }
  return text;
}

std::string FormatRemedies(const JudgedRelease& judged) {
  std::string text;
  for (const Remedy& remedy : judged.remedies)
    text += Line("remedy", "", fmt::format("{}={} ends it", remedy.variable, remedy.value));
  if (text.empty() && !judged.tried.empty())
    text = Line("remedy", "", fmt::format("none found; tried {}", fmt::join(judged.tried, ", ")));
  for (const KnownIssue& issue : judged.issues) {
    text += Line(issue.unjudged.empty() ? "known" : "unseen", "",
                 fmt::format("{}: {} ({} to {}); {}", issue.id, issue.title, issue.since.text(),
                             issue.until ? "before " + issue.until->text() : "now", issue.url));
    if (!issue.unjudged.empty())
      text += Line("", "", fmt::format("for {}; not judgeable here: {}", issue.where, issue.unjudged));
    if (!issue.remedy.empty()) text += Line("", "", "reported to help: " + issue.remedy);
  }
  return text;
}

std::string FormatJudged(const CanaryRequest& request, const CanaryAnswer& answer,
                         const JudgedRelease& judged) {
  if (!judged.problem.empty()) {
    return fmt::format("NCCL {} -> {}: no verdict\n  {}\n{}", answer.in_use.text(), judged.library.text(),
                       judged.problem, FormatDifferences(judged));
  }
  return fmt::format("NCCL {} -> {}: {}\n", answer.in_use.text(), judged.library.text(),
                     Upper(Name(judged.verdict))) +
         FormatDifferences(judged) + FormatEffect(request, answer, judged) + FormatBisection(judged) +
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

// Returns ", ranks on GPUs 0,2 of each node" or, if the GPUs are named for all ranks, ", ranks on GPUs 0,1 of
// node 0, 2,3 of node 1". Empty where no GPUs are named.
std::string GpusText(const CanaryRequest& request) {
  if (request.gpus.empty()) return {};
  const size_t nodes = request.ranks_of_nodes.size();
  const auto all = std::accumulate(request.ranks_of_nodes.begin(), request.ranks_of_nodes.end(), size_t{0});
  if (nodes > 1 && request.gpus.size() != all)
    return fmt::format(", ranks on GPUs {} of each node", fmt::join(request.gpus, ","));
  std::string text;
  auto next = request.gpus.begin();
  for (size_t node = 0; node < nodes; ++node) {
    const auto end = next + request.ranks_of_nodes[node];
    text +=
        fmt::format("{} {} of node {}", node == 0 ? ", ranks on GPUs" : ",", fmt::join(next, end, ","), node);
    next = end;
  }
  return text;
}

std::string NodeText(const CanaryRequest& request) {
  const DescribedMachine& first = request.machines.front();
  const std::string gpus = GpusText(request);
  if (request.machines.size() > 1) return "nodes that are unlike, a process each" + gpus;
  std::string text = fmt::format("{} GPUs and {} adapters a node", first.gpus, first.adapters);
  if (first.nvlink_domain_nodes > 1)
    text += fmt::format(", {} nodes an NVLink domain", first.nvlink_domain_nodes);
  return text + gpus;
}

std::string FormatFidelity(const Fidelity& fidelity) {
  std::string text =
      fmt::format("log: fits; equal to the run here are {}\n", fmt::join(fidelity.agreements, ", "));
  if (!fidelity.not_in_log.empty())
    text += fmt::format("     not in the log, so not compared: {}\n", fmt::join(fidelity.not_in_log, ", "));
  std::vector<std::string> variables;
  for (const auto& [name, value] : fidelity.variables_missing)
    variables.push_back(fmt::format("--env {}={}", name, value));
  if (!variables.empty())
    text +=
        fmt::format("     variables of the job that this run is without: {}\n", fmt::join(variables, " "));
  return text;
}

}  // namespace

std::string MachineNames(const CanaryRequest& request) {
  std::vector<std::string> names;
  for (size_t first = 0, next = 0; first < request.machines.size(); first = next) {
    const std::string& name = request.machines[first].name;
    while (next < request.machines.size() && request.machines[next].name == name) ++next;
    names.push_back(next - first > 1 ? fmt::format("{} times {}", next - first, name) : name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string FormatCanary(const CanaryRequest& request, const CanaryAnswer& answer) {
  std::string text = fmt::format("{}, {}: {}\n", MachineNames(request), WorldText(request.ranks_of_nodes),
                                 NodeText(request));
  if (answer.fidelity) text += FormatFidelity(*answer.fidelity);
  if (request.traffic) text += FormatTraffic(*request.traffic);
  for (const JudgedRelease& judged : answer.judged) text += FormatJudged(request, answer, judged);
  return text + FormatTable(answer, request.collectives.front()) +
         "\nNot judged: device code, NCCL's proxy threads, what the network does with the messages.\n";
}

}  // namespace dynamiccl
