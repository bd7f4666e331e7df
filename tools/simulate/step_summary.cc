// SPDX-License-Identifier: Apache-2.0
// Adds up the times of one simulated rank's collectives by role.
#include "tools/simulate/step_summary.h"

#include <fmt/format.h>

#include <map>

#include "src/collective/size_class.h"

namespace dynamiccl {
namespace {

double Ms(int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-6;
}

}  // namespace

std::vector<SummaryRow> Summarize(const RankTiming& rank, const std::vector<CollectiveLabel>& labels) {
  std::map<std::pair<Role, Collective>, SummaryRow> rows;
  for (size_t i = 0; i < labels.size() && i < rank.collectives.size(); ++i) {
    const CollectiveTiming& timing = rank.collectives[i];
    SummaryRow& row = rows[{labels[i].role, labels[i].collective}];
    row.role = labels[i].role;
    row.collective = labels[i].collective;
    ++row.calls;
    row.bytes += labels[i].bytes;
    row.running_ns += timing.ended_ns - timing.started_ns;
    row.exposed_ns += timing.stalled_ns;
  }
  std::vector<SummaryRow> list;
  for (const auto& [key, row] : rows) list.push_back(row);
  return list;
}

std::string FormatSummary(const RankTiming& rank, const std::vector<SummaryRow>& rows) {
  std::string text =
      fmt::format("{:.3f} ms = {:.3f} ms computing + {:.3f} ms exposed communication + {:.3f} ms other\n",
                  Ms(rank.finished_ns), Ms(rank.compute_ns), Ms(rank.stalled_ns),
                  Ms(rank.finished_ns - rank.compute_ns - rank.stalled_ns));
  text += fmt::format("{:<18} {:<14} {:>7} {:>12} {:>12} {:>12}\n", "role", "collective", "calls", "bytes",
                      "running ms", "exposed ms");
  for (const SummaryRow& row : rows) {
    text +=
        fmt::format("{:<18} {:<14} {:>7} {:>12} {:>12.3f} {:>12.3f}\n", Name(row.role), Name(row.collective),
                    row.calls, FormatBytes(row.bytes), Ms(row.running_ns), Ms(row.exposed_ns));
  }
  return text;
}

}  // namespace dynamiccl
