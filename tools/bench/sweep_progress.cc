// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/sweep_progress.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace dynamiccl {
namespace {

// The user is told if the sweep will take more than this factor times its budget.
constexpr double kMuchLonger = 1.1;

std::string PartName(const SweepPart& part) {
  return part.count > 1 ? fmt::format("{} of {}: {}", part.number, part.count, part.label) : part.label;
}

// Seconds that the later parts of the sweep will take. During the first part they are expected to take as
// long as the first part does.
double LaterSeconds(const SweepPart& part, const SweepPosition& position) {
  if (part.number > 1) return part.later_s;
  return (position.spent_s + position.left_s) * (part.count - 1);
}

std::string StateText(const SweepPosition& position) {
  if (position.round == 0)
    return fmt::format("first calls of {} of {} configs", position.done, position.cells);
  return fmt::format("round {} of {}", position.round, position.rounds);
}

}  // namespace

std::string SweepProgressText(const SweepPart& part, const SweepPosition& position) {
  return fmt::format("{}: {}, about {} left", PartName(part), StateText(position),
                     RoughTime(position.left_s + LaterSeconds(part, position)));
}

std::string OverBudgetText(const SweepPart& part, const SweepPosition& position) {
  if (part.number > 1 || position.round != 1 || position.done < position.cells) return "";
  const double part_s = position.spent_s + position.left_s;
  if (part_s <= kMuchLonger * part.budget_s) return "";
  return fmt::format(
      "this takes about {} and not {}: every config is timed at least twice; name fewer --sizes, "
      "--collectives or "
      "topologies to stay within --budget",
      RoughTime(part_s * part.count), RoughTime(part.budget_s * part.count));
}

void SweepProgress::Show(const SweepPosition& position) {
  const std::string over = OverBudgetText(part_, position);
  if (!over.empty()) {
    line_.Clear();
    spdlog::warn("{}", over);
  }
  if (line_.IsDue()) line_.Show(SweepProgressText(part_, position));
}

void SweepProgress::ShowVisits(int visits, double left_s) {
  if (!line_.IsDue()) return;
  line_.Show(fmt::format("{}: {} visits of configs, about {} left", PartName(part_), visits,
                         RoughTime(std::max(0.0, left_s) + part_.later_s)));
}

}  // namespace dynamiccl
