// SPDX-License-Identifier: Apache-2.0
// Runs the matrix of cells (matrix_cell.h) by command:
//   real_nccl_matrix [--decisions N | --choices FILE] [--releases A,B|all] [--machines M,N] [--doors D,E|all]
//   [--worlds 2x8,1x4] [--json FILE]
// With --decisions, worlds of four processes take N decisions on each rank instead (long_run.h). They use
// 2.28.9, 2.30.7 and 2.32.3 unless releases are named. With --choices, the releases' own choices are written
// to FILE (docs/formats/nccl_choices.md), and FILE's other entries stay. `--releases all` means all releases
// in the user's cache. A named release that is not in the cache is skipped with a message. A release that is
// in the cache and cannot be run fails. Exit codes: 0 every cell that was run holds; 1 a cell fails; 2 usage;
// 3 nothing could be run.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/real_nccl/long_run.h"
#include "tests/real_nccl/matrix_cell.h"
#include "tests/real_nccl/own_choices.h"
#include "traces/format/nccl_choices_file.h"

namespace {

using namespace dynamiccl::real_nccl;

struct World {
  int nodes = 2;
  int ranks_per_node = 8;
};

struct Arguments {
  std::vector<NcclRelease> releases = {{2, 21, 5}, {2, 22, 3}, {2, 27, 7},
                                       {2, 28, 9}, {2, 30, 7}, {2, 32, 3}};
  std::vector<std::string> machines = {"dgx_h100", "dgx_a100"};
  std::vector<Door> doors = {Door::kPreload, Door::kTuner};
  std::vector<World> worlds = {{}};
  std::string json;
  std::string choices;
  bool releases_named = false;
  uint64_t decisions = 0;
};

std::vector<std::string> Words(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream parts(list);
  for (std::string word; std::getline(parts, word, ',');) words.push_back(word);
  return words;
}

// Replaces *out with the parsed words of the list. Returns false at the first word that `parse` rejects, and
// for an empty list.
template <typename Value, typename Parse>
bool ReadList(const std::string& list, Parse&& parse, std::vector<Value>* out) {
  out->clear();
  for (const std::string& word : Words(list)) {
    const auto value = parse(word);
    if (!value) return false;
    out->push_back(*value);
  }
  return !out->empty();
}

std::optional<World> ParseWorld(const std::string& text) {
  World world;
  int end = 0;
  if (std::sscanf(text.c_str(), "%dx%d%n", &world.nodes, &world.ranks_per_node, &end) != 2 ||
      end != static_cast<int>(text.size()) || world.nodes < 1 || world.ranks_per_node < 1)
    return std::nullopt;
  return world;
}

std::optional<std::string> ParseMachine(const std::string& name) {
  if (!std::filesystem::exists(std::string(REAL_NCCL_MACHINES) + "/" + name + ".machine"))
    return std::nullopt;
  return name;
}

bool TakeOption(const std::string& option, const std::string& value, Arguments* out) {
  if (option == "--json") {
    out->json = value;
    return true;
  }
  if (option == "--choices") {
    out->choices = value;
    return true;
  }
  if (option == "--decisions") {
    out->decisions = std::strtoull(value.c_str(), nullptr, 10);
    return out->decisions > 0;
  }
  if (option == "--releases") out->releases_named = true;
  if (option == "--releases" && value == "all") {
    out->releases = FetchedReleases();
    if (out->releases.empty())
      std::fprintf(stderr, "no NCCL in the cache; run: tools/setup/fetch_nccl.sh 2.28.9\n");
    return !out->releases.empty();
  }
  if (option == "--doors" && value == "all") {
    out->doors = {Door::kPreload, Door::kTuner, Door::kBoth, Door::kStaticPlugin};
    return true;
  }
  if (option == "--releases") return ReadList(value, ParseRelease, &out->releases);
  if (option == "--machines") return ReadList(value, ParseMachine, &out->machines);
  if (option == "--doors") return ReadList(value, ParseDoor, &out->doors);
  return option == "--worlds" && ReadList(value, ParseWorld, &out->worlds);
}

std::vector<Cell> Cells(const Arguments& arguments) {
  std::vector<Cell> cells;
  for (const NcclRelease& release : arguments.releases) {
    for (const std::string& machine : arguments.machines) {
      for (const World& world : arguments.worlds) {
        for (const Door door : arguments.doors)
          cells.push_back({release, machine, world.nodes, world.ranks_per_node, door});
      }
    }
  }
  return cells;
}

void Print(const CellResult& result) {
  std::printf("%-40s %s", result.cell.name().c_str(),
              !result.skipped.empty() ? "SKIPPED"
              : result.holds()        ? "holds"
                                      : "FAILS");
  for (const Finding& finding : result.findings)
    std::printf("  %s %zu%s", finding.check.c_str(), finding.compared, finding.holds ? "" : "!");
  std::printf("  (%.1f s", result.seconds);
  if (result.init_seconds > 0) std::printf(", initialised in %.2f s", result.init_seconds);
  std::printf(")\n");
  if (!result.skipped.empty()) std::printf("  %s\n", result.skipped.c_str());
  for (const Finding& finding : result.findings) {
    if (!finding.holds) std::printf("  %s: %s\n", finding.check.c_str(), finding.detail.c_str());
  }
  std::fflush(stdout);
}

nlohmann::json AsJson(const CellResult& result) {
  nlohmann::json findings = nlohmann::json::array();
  for (const Finding& finding : result.findings) {
    findings.push_back({{"check", finding.check},
                        {"holds", finding.holds},
                        {"calls_compared", finding.compared},
                        {"detail", finding.detail}});
  }
  return {{"release", result.cell.release.text()},
          {"machine", result.cell.machine},
          {"nodes", result.cell.nodes},
          {"ranks_per_node", result.cell.ranks_per_node},
          {"door", Name(result.cell.door)},
          {"tuner_version", result.cell.release.tuner_version()},
          {"skipped", result.skipped},
          {"holds", result.skipped.empty() && result.holds()},
          {"seconds", result.seconds},
          {"init_seconds", result.init_seconds},
          {"findings", findings}};
}

int ExitCode(const std::vector<CellResult>& results) {
  size_t skipped = 0;
  for (const CellResult& result : results) {
    if (!result.holds()) return 1;
    skipped += result.skipped.empty() ? 0 : 1;
  }
  std::printf("%zu cells hold, %zu skipped\n", results.size() - skipped, skipped);
  return skipped == results.size() ? 3 : 0;
}

// Runs the decisions of one release. Returns the result as one object of the JSON file.
nlohmann::json RunDecisions(const NcclRelease& release, uint64_t decisions, const std::string& scratch,
                            bool* holds) {
  const LongRunResult result = RunLong({.release = release, .decisions = decisions, .scratch = scratch});
  std::printf(
      "%s 4 processes: %llu decisions a rank, %llu named a pair, %llu lines of NCCL compared, %.0f s\n",
      release.text().c_str(), static_cast<unsigned long long>(result.decisions),
      static_cast<unsigned long long>(result.asked), static_cast<unsigned long long>(result.log_lines),
      result.seconds);
  if (!result.skipped.empty()) std::printf("  SKIPPED: %s\n", result.skipped.c_str());
  if (!result.trouble.empty()) std::printf("  FAILS: %s\n", result.trouble.c_str());
  std::fflush(stdout);
  *holds = *holds && result.trouble.empty();
  return {{"release", release.text()},     {"skipped", result.skipped}, {"trouble", result.trouble},
          {"decisions", result.decisions}, {"asked", result.asked},     {"log_lines", result.log_lines},
          {"seconds", result.seconds}};
}

int RunAllDecisions(const Arguments& arguments, const std::string& scratch) {
  const std::vector<NcclRelease> usual = {{2, 28, 9}, {2, 30, 7}, {2, 32, 3}};
  bool holds = true;
  nlohmann::json json = nlohmann::json::array();
  for (const NcclRelease& release : arguments.releases_named ? arguments.releases : usual)
    json.push_back(RunDecisions(release, arguments.decisions, scratch, &holds));
  if (!arguments.json.empty()) std::ofstream(arguments.json) << json.dump(1) << "\n";
  return holds ? 0 : 1;
}

// Adds the choices of one release to the file, which is whole after each world. Returns false when a run or a
// write failed.
bool MakeChoices(const Arguments& arguments, const NcclRelease& release, const std::string& scratch,
                 dynamiccl::NcclChoices* choices) {
  bool made = true;
  for (const std::string& machine : arguments.machines) {
    for (const World& world : arguments.worlds) {
      const dynamiccl::NcclWorld place{machine, world.nodes, world.ranks_per_node};
      const std::string trouble =
          AddOwnChoices(release, place, dynamiccl::real_nccl::ChoiceSizes(), scratch, choices);
      std::printf("%s %s: %s\n", release.text().c_str(), place.text().c_str(),
                  trouble.empty() ? "written" : trouble.c_str());
      std::fflush(stdout);
      made = made && trouble.empty();
      if (!trouble.empty()) continue;
      const auto written = WriteNcclChoices(arguments.choices, *choices);
      if (!written) std::fprintf(stderr, "%s\n", written.error().message.c_str());
      made = made && written;
    }
  }
  return made;
}

int MakeAllChoices(const Arguments& arguments, const std::string& scratch) {
  dynamiccl::NcclChoices choices;
  if (std::filesystem::exists(arguments.choices)) {
    auto known = dynamiccl::ReadNcclChoices(arguments.choices);
    if (!known) {
      std::fprintf(stderr, "%s\n", known.error().message.c_str());
      return 2;
    }
    choices = std::move(*known);
  }
  bool made = true;
  for (const NcclRelease& release : arguments.releases) {
    const std::string not_fetched = WhyNotFetched(release), why_not = WhyNotRunnable(release);
    if (why_not.empty()) {
      made = MakeChoices(arguments, release, scratch, &choices) && made;
      continue;
    }
    std::printf("%s %s: %s\n", release.text().c_str(), not_fetched.empty() ? "FAILS" : "SKIPPED",
                why_not.c_str());
    made = made && !not_fetched.empty();
  }
  return made ? 0 : 1;
}

int RunCells(const Arguments& arguments, const std::string& scratch) {
  Matrix matrix(scratch);
  std::vector<CellResult> results;
  nlohmann::json json = nlohmann::json::array();
  for (const Cell& cell : Cells(arguments)) {
    results.push_back(matrix.Check(cell));
    Print(results.back());
    json.push_back(AsJson(results.back()));
    if (!arguments.json.empty()) std::ofstream(arguments.json) << json.dump(1) << "\n";
  }
  return ExitCode(results);
}

}  // namespace

int main(int count, char** words) {
  Arguments arguments;
  for (int word = 1; word < count; word += 2) {
    if (word + 1 < count && TakeOption(words[word], words[word + 1], &arguments)) continue;
    std::fprintf(stderr,
                 "real_nccl_matrix: cannot take '%s'\nusage: real_nccl_matrix [--decisions N | --choices "
                 "FILE] [--releases "
                 "A,B|all] [--machines "
                 "M,N] [--doors preload,tuner,both,static_plugin|all] [--worlds 2x8,1x4] [--json FILE]\n",
                 words[word]);
    return 2;
  }
  const std::string scratch =
      (std::filesystem::temp_directory_path() / ("real_nccl_matrix_" + std::to_string(getpid()))).string();
  std::filesystem::create_directories(scratch);
  const int code = !arguments.choices.empty() ? MakeAllChoices(arguments, scratch)
                   : arguments.decisions > 0  ? RunAllDecisions(arguments, scratch)
                                              : RunCells(arguments, scratch);
  if (code != 1) std::filesystem::remove_all(scratch);
  return code;
}
