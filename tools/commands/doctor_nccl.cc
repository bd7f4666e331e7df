// SPDX-License-Identifier: Apache-2.0
// Prints what an upgrade of NCCL changes, as a table, as Markdown or as JSON.
#include "tools/commands/doctor_nccl.h"

#include <algorithm>
#include <cmath>

#include "src/collective/size_class.h"
#include "tools/doctor/nccl_comparison.h"
#include "tools/exit_code.h"
#include "tools/report/json_output.h"
#include "traces/format/nccl_choices_file.h"

namespace dynamiccl {
namespace {

// Path of the data set that is part of the installation: what NCCL's releases choose on described machines.
constexpr const char* kDataFile = "traces/nccl_choices/releases.nccl-choices";

std::string Text(const Between<uint64_t>& bytes) {
  if (bytes.least == bytes.most) return FormatBytes(bytes.least);
  return fmt::format("{} to {}", FormatBytes(bytes.least), FormatBytes(bytes.most));
}

std::string PairText(NcclPair pair) {
  return fmt::format("{}/{}", Name(pair.first), Name(pair.second));
}

std::string ChannelsText(const Between<int>& channels) {
  return channels.least == channels.most ? fmt::format("{}", channels.least)
                                         : fmt::format("{}-{}", channels.least, channels.most);
}

// Three digits with the unit that fits: "12.3us", "1.23ms".
std::string Rounded(float microseconds) {
  if (microseconds >= 1e6f) return fmt::format("{:.3g}s", microseconds / 1e6f);
  if (microseconds >= 1e3f) return fmt::format("{:.3g}ms", microseconds / 1e3f);
  return fmt::format("{:.3g}us", microseconds);
}

// A range of times, or "?" where the release gives none.
std::string TimesText(const Between<float>& times) {
  if (std::isnan(times.least)) return "?";
  const std::string least = Rounded(times.least), most = Rounded(times.most);
  return least == most ? least : fmt::format("{} to {}", least, most);
}

std::string Title(const NcclComparison& comparison) {
  return fmt::format("NCCL {} -> {}", comparison.before, comparison.after);
}

// One sentence with the counts of changed calls.
std::string Summary(const NcclComparison& comparison) {
  const auto percent = [&](size_t count) {
    return 100.0 * static_cast<double>(count) / static_cast<double>(std::max<size_t>(comparison.calls, 1));
  };
  return fmt::format(
      "of {} calls in {} worlds {} ({:.1f} %) choose another algorithm or protocol, {} ({:.1f} %) other "
      "channels alone",
      comparison.calls, comparison.worlds.size(), comparison.other_pairs, percent(comparison.other_pairs),
      comparison.other_channels, percent(comparison.other_channels));
}

std::string ConfigText(const ChosenRange& range) {
  return fmt::format("{} x {}", PairText(range.pair), ChannelsText(range.channels));
}

// ---- table ----

void PrintRange(const ChangedRange& range) {
  fmt::print("  {:<13} {:<14} {:<22} -> {:<22} {:>18} -> {}\n", Name(range.collective), Text(range.bytes),
             ConfigText(range.before), ConfigText(range.after), TimesText(range.before.microseconds),
             TimesText(range.after.microseconds));
}

void PrintDoctorNcclTable(const NcclComparison& comparison) {
  fmt::print("{}\n{}\n", Title(comparison), Summary(comparison));
  for (const NcclWorld& world : comparison.worlds) {
    const auto here = [&](const ChangedRange& range) { return range.world == world; };
    const bool changed = std::any_of(comparison.ranges.begin(), comparison.ranges.end(), here);
    fmt::print("{}{}\n", world.text(), changed ? "" : ": the same");
    for (const ChangedRange& range : comparison.ranges) {
      if (here(range)) PrintRange(range);
    }
  }
}

// ---- Markdown ----

// A row of the Markdown table: one change of NCCL's choice, and all collectives that have this change in one
// world (nodes and ranks).
struct MarkdownRow {
  std::string world;
  std::string collectives;
  std::string change;
};

std::string ChangeCells(const ChangedRange& range) {
  return fmt::format("{} | {} | {} | {} | {}", Text(range.bytes), PairText(range.before.pair),
                     PairText(range.after.pair), TimesText(range.before.microseconds),
                     TimesText(range.after.microseconds));
}

std::vector<MarkdownRow> MarkdownRows(const NcclComparison& comparison) {
  std::vector<MarkdownRow> rows;
  for (const ChangedRange& range : comparison.ranges) {
    if (!range.other_pair()) continue;
    const MarkdownRow row{range.world.text(), std::string(Name(range.collective)), ChangeCells(range)};
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const MarkdownRow& one) {
      return one.world == row.world && one.change == row.change;
    });
    if (same == rows.end())
      rows.push_back(row);
    else
      same->collectives += ", " + row.collectives;
  }
  return rows;
}

void PrintMarkdown(const NcclComparison& comparison) {
  fmt::print("## {} to {}\n\n", comparison.before, comparison.after);
  std::string summary = Summary(comparison);
  summary[0] = 'O';
  fmt::print("{}.\n\n", summary);
  if (comparison.other_pairs == 0) return;
  fmt::print(
      "| world | collectives | sizes | {0} | {1} | {0} expects | {1} expects |\n"
      "|---|---|---|---|---|---|---|\n",
      comparison.before, comparison.after);
  for (const MarkdownRow& row : MarkdownRows(comparison))
    fmt::print("| {} | {} | {} |\n", row.world, row.collectives, row.change);
  fmt::print("\n");
}

// ---- JSON ----

Json TimeJson(float microseconds) {
  // A release that gives no time becomes null. The data set has six digits; further digits would only come
  // from the float.
  return std::isnan(microseconds) ? Json() : Json(std::stod(fmt::format("{:.6g}", microseconds)));
}

Json DoctorNcclJson(const ChosenRange& range) {
  return {{"algorithm", Name(range.pair.first)},
          {"protocol", Name(range.pair.second)},
          {"channels", {range.channels.least, range.channels.most}},
          {"expected_us", {TimeJson(range.microseconds.least), TimeJson(range.microseconds.most)}}};
}

Json DoctorNcclJson(const ChangedRange& range) {
  return {{"machine", range.world.machine},
          {"nodes", range.world.nodes},
          {"ranks_per_node", range.world.ranks_per_node},
          {"collective", Name(range.collective)},
          {"bytes", {range.bytes.least, range.bytes.most}},
          {"before", DoctorNcclJson(range.before)},
          {"after", DoctorNcclJson(range.after)}};
}

Json DoctorNcclJson(const NcclComparison& comparison) {
  Json worlds = Json::array(), ranges = Json::array();
  for (const NcclWorld& world : comparison.worlds)
    worlds.push_back({world.machine, world.nodes, world.ranks_per_node});
  for (const ChangedRange& range : comparison.ranges) ranges.push_back(DoctorNcclJson(range));
  return {{"before", comparison.before},
          {"after", comparison.after},
          {"worlds", worlds},
          {"calls", comparison.calls},
          {"other_algorithm_or_protocol", comparison.other_pairs},
          {"other_channels_alone", comparison.other_channels},
          {"ranges", ranges}};
}

// Path of the data set, or an error that tells how to make one.
Result<std::string> FindChoices(const Installation& installation, const CompareNcclOptions& options) {
  const std::string file = options.choices.empty() ? FindDataFile(installation, kDataFile) : options.choices;
  if (file.empty()) {
    return WithHint(MakeError(ErrorKind::kNotFound, "this installation has no share/dynamiccl/{}", kDataFile),
                    "name one by --choices; tests/real_nccl/README.md says how it is made");
  }
  return file;
}

}  // namespace

Result<int> CompareNccl(const Installation& installation, const CompareNcclOptions& options) {
  DYNAMICCL_TRY(const std::string file, FindChoices(installation, options));
  DYNAMICCL_TRY(const NcclChoices choices, ReadNcclChoices(file));
  Json all = Json::array();
  for (size_t next = 1; next < options.releases.size(); ++next) {
    DYNAMICCL_TRY(const NcclComparison comparison, CompareReleases(choices, options.releases[next - 1],
                                                                   options.releases[next], options.machine));
    if (options.json)
      all.push_back(DoctorNcclJson(comparison));
    else if (options.markdown)
      PrintMarkdown(comparison);
    else
      PrintDoctorNcclTable(comparison);
  }
  if (options.json) PrintJson({{"schema", 1}, {"file", file}, {"comparisons", all}});
  return kExitOk;
}

}  // namespace dynamiccl
