// SPDX-License-Identifier: Apache-2.0
// The part of the page about one trace.
#include <fmt/format.h>

#include <filesystem>

#include "src/collective/size_class.h"
#include "tools/report/report.h"
#include "tools/report/trace_summary.h"

namespace dynamiccl {
namespace {

// A page stays readable; the JSON twin and `dynamiccl trace export` have every size.
constexpr size_t kLargestSizeTable = 40;

std::string Overview(const TraceSummary& summary) {
  return HtmlParagraph(
      fmt::format("{} {}, {} calls a rank, {} marked steps, {} records lost{}{}. Library: {}.",
                  summary.sections, summary.sections == 1 ? "process" : "processes", summary.calls,
                  summary.steps, summary.lost, summary.closed ? "" : ", a process did not end in order",
                  summary.mirrored ? ", recorded on one rank only and mirrored to all" : "",
                  summary.library.empty() ? "unknown" : summary.library));
}

std::string SizeTable(const TraceSummary& summary) {
  HtmlTable table({{"collective"}, {"bytes", true}, {"calls", true}});
  size_t rows = 0;
  for (const auto& [key, calls] : summary.sizes) {
    if (++rows > kLargestSizeTable) break;
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
  return table.empty() ? "" : "<h3>Decisions</h3>\n" + table.Html();
}

}  // namespace

HtmlSection TraceSectionHtml(const NamedTrace& trace) {
  const TraceSummary summary = SummarizeTrace(trace.trace);
  return {"", "Trace " + std::filesystem::path(trace.path).filename().string(),
          HtmlParagraph(Describe(summary.coverage)) + Overview(summary) + SizeTable(summary) +
              DecisionTable(summary)};
}

}  // namespace dynamiccl
