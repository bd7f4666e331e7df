// SPDX-License-Identifier: Apache-2.0
// One pass over the groups adds each call to the row of its kind; the table shows averages per call.
#include "traces/replay/replay_summary.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

namespace dynamiccl {
namespace {

// A column of the table. A cell without a value is empty.
struct Column {
  const char* title;
  // Width in characters. If it is negative, the text is aligned to the left.
  int width;
  std::string (*cell)(const ReplayRow& row);
};

std::string KnownTime(double microseconds) {
  return microseconds < 0 ? "" : fmt::format("{:.1f}", microseconds);
}

std::string RecordedTime(const ReplayRow& row) {
  return row.recorded_calls == 0 ? "" : KnownTime(row.recorded_us / static_cast<double>(row.recorded_calls));
}

const Column kColumns[] = {
    {"stage", -8,
     [](const ReplayRow& row) {
       return row.stage == ZeroStage::kUnknown ? "" : std::string(Name(row.stage));
     }},
    {"collective", -14, [](const ReplayRow& row) { return std::string(Name(row.collective)); }},
    {"size class", -16, [](const ReplayRow& row) { return Name(row.size_class); }},
    {"calls", 8, [](const ReplayRow& row) { return std::to_string(row.calls); }},
    {"bytes", 10, [](const ReplayRow& row) { return FormatBytes(row.bytes); }},
    {"recorded", 12, RecordedTime},
    {"replayed", 12,
     [](const ReplayRow& row) { return KnownTime(row.replayed_us / static_cast<double>(row.calls)); }},
    {"default", 12, [](const ReplayRow& row) { return KnownTime(row.default_us); }},
    {"best", 12, [](const ReplayRow& row) { return KnownTime(row.best_us); }},
};

// The columns that have a value in some row; all where there are no rows.
std::vector<Column> FilledColumns(const std::vector<ReplayRow>& rows) {
  std::vector<Column> filled;
  std::copy_if(
      std::begin(kColumns), std::end(kColumns), std::back_inserter(filled), [&](const Column& column) {
        return rows.empty() || std::any_of(rows.begin(), rows.end(),
                                           [&](const ReplayRow& row) { return !column.cell(row).empty(); });
      });
  return filled;
}

// Returns one line of the table. Each column has the text that `text_of` gives, in the column's width; "-"
// stands for no value.
template <typename TextOf>
std::string LineOf(const std::vector<Column>& columns, const TextOf& text_of) {
  std::string line;
  for (const Column& column : columns) {
    const std::string text = text_of(column), shown = text.empty() ? "-" : text;
    if (!line.empty()) line += " ";
    line += column.width < 0 ? fmt::format("{:<{}}", shown, -column.width)
                             : fmt::format("{:>{}}", shown, column.width);
  }
  return line;
}

}  // namespace

std::vector<ReplayRow> SummarizeReplay(const ReplayPlan& plan, const std::vector<double>& group_us) {
  std::map<std::tuple<ZeroStage, Collective, SizeClass>, ReplayRow> rows;
  for (size_t i = 0; i < plan.groups.size() && i < group_us.size(); ++i) {
    uint64_t group_bytes = 0;
    for (const TraceCall& call : plan.groups[i].calls) group_bytes += call.issued.call.bytes;
    for (const TraceCall& call : plan.groups[i].calls) {
      const CollectiveCall& c = call.issued.call;
      const SizeClass size_class = SizeClassOf(c.bytes);
      ReplayRow& row = rows[{call.issued.labelled_stage, c.collective, size_class}];
      row.stage = call.issued.labelled_stage;
      row.collective = c.collective;
      row.size_class = size_class;
      ++row.calls;
      row.bytes += c.bytes;
      row.replayed_us += group_us[i] * static_cast<double>(c.bytes) / static_cast<double>(group_bytes);
      if (call.issued.duration_ns < 0) continue;
      ++row.recorded_calls;
      row.recorded_us += static_cast<double>(call.issued.duration_ns) * 1e-3;
    }
  }
  std::vector<ReplayRow> list;
  for (const auto& [key, row] : rows) list.push_back(row);
  return list;
}

std::string FormatReplayRows(const std::vector<ReplayRow>& rows) {
  const std::vector<Column> columns = FilledColumns(rows);
  std::string text =
      LineOf(columns, [](const Column& column) { return std::string(column.title); }) + "   us per call\n";
  for (const ReplayRow& row : rows)
    text += LineOf(columns, [&](const Column& column) { return column.cell(row); }) + "\n";
  return text;
}

}  // namespace dynamiccl
