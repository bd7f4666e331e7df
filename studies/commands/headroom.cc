// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-lab headroom`: by how much a choice could be faster than the library's own, according to
// measured times. It shows this by system, collective and size, and shows what each field of the key adds.
#include <fmt/format.h>

#include <algorithm>

#include "src/collective/size_class.h"
#include "studies/headroom/headroom.h"
#include "studies/headroom/key_field.h"
#include "studies/headroom/shared_roles.h"
#include "studies/lab_commands.h"
#include "tools/exit_code.h"
#include "tools/report/json_output.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {
namespace {

struct HeadroomCommandOptions {
  std::vector<std::string> data;
  std::vector<std::string> traces;
  bool json = false;
};

// All results of the command.
struct Audit {
  // The tables by the property that groups the cells.
  std::vector<std::pair<std::string, std::vector<HeadroomRow>>> tables;
  std::vector<std::pair<KeyField, FieldWorth>> fields;
  std::vector<RegimePair> regimes;
  // One entry for each trace.
  std::vector<std::pair<std::string, SharedRoles>> roles;
};

std::string SystemLabel(const ArmCell& cell) {
  const bool told = cell.model.has_value();  // then its name has the ranks, or its sweep has one count
  return told ? cell.system : fmt::format("{}, {} ranks", cell.system, cell.n_ranks);
}

// Ranges of a factor of 16: "4K..64K".
std::string SizeLabel(const ArmCell& cell) {
  uint64_t low = 1;
  while (low * 16 <= cell.bytes) low *= 16;
  return fmt::format("{}..{}", FormatBytes(low), FormatBytes(low * 16));
}

// Sorts cells by size, so that the rows of the table ascend.
std::vector<ArmCell> BySize(std::vector<ArmCell> cells) {
  std::stable_sort(cells.begin(), cells.end(),
                   [](const ArmCell& a, const ArmCell& b) { return a.bytes < b.bytes; });
  return cells;
}

Audit AuditOf(const std::vector<ArmCell>& cells) {
  Audit audit;
  if (cells.empty()) return audit;
  audit.tables.emplace_back("all", SummarizeHeadroom(cells, [](const ArmCell&) { return "all"; }));
  audit.tables.emplace_back("system", SummarizeHeadroom(cells, SystemLabel));
  audit.tables.emplace_back("collective", SummarizeHeadroom(cells, [](const ArmCell& c) {
                              return std::string(Name(c.collective));
                            }));
  audit.tables.emplace_back("bytes", SummarizeHeadroom(BySize(cells), SizeLabel));
  for (const KeyField field : kKeyFields) audit.fields.emplace_back(field, WorthOf(GroupsBy(field, cells)));
  audit.regimes = RegimePairs(cells);
  return audit;
}

double ShareOfHeadroom(size_t part, size_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

void PrintHeadroom(const std::string& by, const std::vector<HeadroomRow>& rows) {
  fmt::print(
      "\n| {} | cells | gain % | picked and timed on the same % | noise % | clear cells % | their gain % | "
      "clear losses % |\n|---|---|---|---|---|---|---|---|\n",
      by);
  for (const HeadroomRow& row : rows) {
    fmt::print("| {} | {}{} | {:.1f} | {:.1f} | {:.1f} | {:.0f} | {:.1f} | {:.0f} |\n", row.label, row.cells,
               row.unrepeated > 0 ? fmt::format(" ({} not repeated)", row.unrepeated) : "",
               PercentOfOctaves(row.mean_gain), PercentOfOctaves(row.mean_naive),
               PercentOfOctaves(row.median_noise), ShareOfHeadroom(row.clear, row.cells),
               PercentOfOctaves(row.mean_clear_gain), ShareOfHeadroom(row.clear_losses, row.cells));
  }
}

std::string FieldCells(const FieldWorth& worth) {
  return fmt::format("{} | {:.0f} | {:.0f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f}", worth.groups,
                     100 * worth.naive_conflicts, 100 * worth.clear_conflicts, PercentOfOctaves(worth.gain),
                     PercentOfOctaves(worth.clear_gain), PercentOfOctaves(worth.noise),
                     PercentOfOctaves(worth.together), PercentOfOctaves(worth.apart));
}

void PrintFields(const Audit& audit) {
  if (audit.fields.empty()) return;
  constexpr char kColumns[] =
      "groups | best arm differs % | clear conflicts % | gain of telling apart % | of the clear ones % | "
      "noise % | one answer over default % | an answer each over default % |\n";
  fmt::print("\n| field | {}|---|---|---|---|---|---|---|---|---|\n", kColumns);
  for (const auto& [field, worth] : audit.fields) {
    if (worth.groups > 0) fmt::print("| {} | {} |\n", Name(field), FieldCells(worth));
  }
  if (audit.regimes.empty()) return;
  fmt::print("\n| same stated fabric | {}|---|---|---|---|---|---|---|---|---|\n", kColumns);
  for (const RegimePair& pair : audit.regimes)
    fmt::print("| {}, {} | {} |\n", pair.normal, pair.other, FieldCells(pair.worth));
}

void PrintRoles(const Audit& audit) {
  if (audit.roles.empty()) return;
  fmt::print(
      "\n| trace | keys of (communicator, collective, size class) | in several roles % | bytes in them % | "
      "in "
      "several phases % | bytes in them % |\n|---|---|---|---|---|---|\n");
  for (const auto& [name, s] : audit.roles) {
    const double whole = s.bytes > 0 ? s.bytes : 1;
    fmt::print("| {} | {} | {:.0f} | {:.1f} | {:.0f} | {:.1f} |\n", name, s.keys,
               ShareOfHeadroom(s.several_roles, s.keys), 100 * s.bytes_several_roles / whole,
               ShareOfHeadroom(s.several_phases, s.keys), 100 * s.bytes_several_phases / whole);
  }
}

Json HeadroomJson(const HeadroomRow& row) {
  return {{"label", row.label},
          {"cells", row.cells},
          {"not_repeated", row.unrepeated},
          {"mean_gain_octaves", row.mean_gain},
          {"mean_naive_gain_octaves", row.mean_naive},
          {"median_noise_octaves", row.median_noise},
          {"clear", row.clear},
          {"mean_clear_gain_octaves", row.mean_clear_gain},
          {"share_of_gain_in_clear", row.share_of_gain},
          {"clear_losses", row.clear_losses}};
}

Json HeadroomJson(const FieldWorth& worth) {
  return {{"groups", worth.groups},
          {"best_arm_differs", worth.naive_conflicts},
          {"clear_conflicts", worth.clear_conflicts},
          {"gain_octaves", worth.gain},
          {"clear_gain_octaves", worth.clear_gain},
          {"noise_octaves", worth.noise},
          {"together_over_default_octaves", worth.together},
          {"apart_over_default_octaves", worth.apart}};
}

Json HeadroomJson(const Audit& audit) {
  Json json = {{"schema", 1}};
  for (const auto& [by, rows] : audit.tables) {
    Json& list = json["headroom"][by] = Json::array();
    for (const HeadroomRow& row : rows) list.push_back(HeadroomJson(row));
  }
  for (const auto& [field, worth] : audit.fields) json["fields"][Name(field)] = HeadroomJson(worth);
  json["regimes"] = Json::array();
  for (const RegimePair& pair : audit.regimes)
    json["regimes"].push_back(
        {{"normal", pair.normal}, {"other", pair.other}, {"worth", HeadroomJson(pair.worth)}});
  json["roles"] = Json::array();
  for (const auto& [name, s] : audit.roles) {
    json["roles"].push_back({{"trace", name},
                             {"keys", s.keys},
                             {"several_roles", s.several_roles},
                             {"several_phases", s.several_phases},
                             {"bytes", s.bytes},
                             {"bytes_several_roles", s.bytes_several_roles},
                             {"bytes_several_phases", s.bytes_several_phases}});
  }
  return json;
}

Result<Audit> Read(const HeadroomCommandOptions& options) {
  std::vector<ArmCell> cells;
  for (const std::string& path : options.data) {
    DYNAMICCL_TRY(const std::vector<ArmCell> more, ReadCells(path));
    cells.insert(cells.end(), more.begin(), more.end());
  }
  if (cells.empty() && !options.data.empty()) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "no collective was timed both as the library runs it and otherwise"),
                    "`dynamiccl sweep` times both; tables need forced algorithms or several settings");
  }
  Audit audit = AuditOf(cells);
  for (const std::string& path : options.traces) {
    DYNAMICCL_TRY(const Trace trace, ReadTrace(path));
    audit.roles.emplace_back(path, SharedRolesOf(trace));
  }
  return audit;
}

}  // namespace

Result<int> HeadroomCommand(CommandLine& line) {
  HeadroomCommandOptions options;
  CLI::App& app = line.app();
  app.add_option("data", options.data, "Sweeps (.measurements) and tables of published times");
  app.add_option("--trace", options.traces,
                 "Labelled traces: how often calls of one size come in several roles or phases");
  app.add_flag("--json", options.json, "Print JSON");
  if (const auto exit = line.Parse()) return *exit;
  if (options.data.empty() && options.traces.empty())
    return MakeError(ErrorKind::kInvalidArgument, "no measured times and no trace given");
  DYNAMICCL_TRY(const Audit audit, Read(options));
  if (options.json) {
    PrintJson(HeadroomJson(audit));
    return kExitOk;
  }
  if (!audit.tables.empty()) {
    fmt::print(
        "The best of each cell, picked on one half of the repeats and timed on the other, both ways round, "
        "over "
        "the library's own choice.\nClear: at least {:.0f} times what halves of the repeats of one arm "
        "differ "
        "by.\n",
        CellHeadroom::kClear);
  }
  for (const auto& [by, rows] : audit.tables) PrintHeadroom(by, rows);
  PrintFields(audit);
  PrintRoles(audit);
  return kExitOk;
}

}  // namespace dynamiccl
