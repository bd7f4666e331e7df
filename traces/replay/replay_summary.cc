// SPDX-License-Identifier: Apache-2.0
// One pass over the groups adds each call to the row of its kind; the table shows averages per call.
#include "traces/replay/replay_summary.h"

#include <map>
#include <tuple>

namespace dynamiccl {

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
  // A time that is not known shows as "-".
  const auto known = [](double microseconds) {
    return microseconds < 0 ? std::string("-") : fmt::format("{:.1f}", microseconds);
  };
  std::string text =
      fmt::format("{:<8} {:<14} {:<16} {:>8} {:>10} {:>12} {:>12} {:>12} {:>12}   us per call\n", "stage",
                  "collective", "size class", "calls", "bytes", "recorded", "replayed", "default", "best");
  for (const ReplayRow& row : rows) {
    const double recorded =
        row.recorded_calls == 0 ? -1 : row.recorded_us / static_cast<double>(row.recorded_calls);
    text += fmt::format("{:<8} {:<14} {:<16} {:>8} {:>10} {:>12} {:>12.1f} {:>12} {:>12}\n", Name(row.stage),
                        Name(row.collective), Name(row.size_class), row.calls, FormatBytes(row.bytes),
                        known(recorded), row.replayed_us / static_cast<double>(row.calls),
                        known(row.default_us), known(row.best_us));
  }
  return text;
}

}  // namespace dynamiccl
