// SPDX-License-Identifier: Apache-2.0
// Formats the result of one replay.
#include "tools/replay/replay_report.h"

#include <spdlog/spdlog.h>

namespace dynamiccl {
namespace {

Json ToJson(const ReplayRow& row) {
  return {{"stage", Name(row.stage)},
          {"collective", Name(row.collective)},
          {"size_class", Name(row.size_class)},
          {"calls", row.calls},
          {"bytes", row.bytes},
          {"recorded_calls", row.recorded_calls},
          {"recorded_us", row.recorded_us},
          {"replayed_us", row.replayed_us},
          {"default_us", row.default_us},
          {"best_us", row.best_us}};
}

}  // namespace

std::string OperationText(uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

Json ToJson(const ReplayReport& report) {
  Json rows = Json::array();
  for (const ReplayRow& row : report.rows) rows.push_back(ToJson(row));
  return {{"schema", 1},
          {"library", report.library},
          {"ranks", report.ranks},
          {"operations", report.operations.front()},
          {"operations_of_ranks", report.operations},
          {"wall_us", report.wall_us},
          {"checked", report.checked},
          {"wrong", report.wrong},
          {"notes", report.notes},
          {"rows", rows}};
}

void Print(const ReplayReport& report) {
  for (const std::string& note : report.notes) spdlog::info("{}", note);
  fmt::print("# {} ranks over {}, {}, times of rank 0\n", report.ranks, report.library,
             report.paced ? "paced as recorded" : "at full speed");
  fmt::print("{}", FormatReplayRows(report.rows));
  fmt::print("# {:.3f} s, operations {}\n", report.wall_us * 1e-6, report.operations.front());
  if (report.check) fmt::print("# {} elements checked, {} wrong\n", report.checked, report.wrong);
}

}  // namespace dynamiccl
