// SPDX-License-Identifier: Apache-2.0
// `dynamiccl doctor`: findings as a table or JSON; exit code 1 when one of them is FAIL. With --compare-nccl,
// what an upgrade of NCCL changes instead (doctor_nccl.h).
#include "tools/doctor/check.h"

#include <unistd.h>

#include <algorithm>

#include "tools/command_table.h"
#include "tools/commands/doctor_nccl.h"
#include "tools/exit_code.h"
#include "tools/report/json_output.h"
#include "tools/talk.h"
#include "tools/version.h"

namespace dynamiccl {
namespace {

// ANSI green, yellow, red.
const char* ColorOf(Verdict verdict) {
  return verdict == Verdict::kOk ? "\033[32m" : verdict == Verdict::kWarn ? "\033[33m" : "\033[31m";
}

void PrintTable(const std::vector<Finding>& findings) {
  const bool color = ColorWelcome(STDOUT_FILENO);
  size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.subject.size());
  for (const Finding& finding : findings) {
    const std::string verdict = fmt::format("{:<4}", Name(finding.verdict));
    fmt::print("{}  {:<{}}  {}\n", color ? ColorOf(finding.verdict) + verdict + "\033[0m" : verdict,
               finding.subject, width, finding.value);
    if (!finding.advice.empty()) fmt::print("      {:<{}}  -> {}\n", "", width, finding.advice);
  }
}

Json AsJson(const std::vector<Finding>& findings, bool ok) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"subject", finding.subject},
                    {"value", finding.value},
                    {"verdict", Name(finding.verdict)},
                    {"advice", finding.advice}});
  }
  return {{"schema", 1}, {"version", kVersion}, {"ok", ok}, {"findings", list}};
}

void AddCompareOptions(CLI::App& app, CompareNcclOptions* compare) {
  auto* releases =
      app.add_option("--compare-nccl", compare->releases,
                     "Instead: what release B of NCCL chooses by itself otherwise than A; of more "
                     "releases, each against the one before");
  releases->expected(2, 100)->type_name("A B");
  app.add_option("--machine", compare->machine, "Of this machine only: dgx_h100, dgx_a100, ...")
      ->needs(releases)
      ->type_name("NAME");
  app.add_option("--choices", compare->choices,
                 "What releases choose (default: the file of this installation)")
      ->needs(releases)
      ->type_name("FILE");
  app.add_flag("--markdown", compare->markdown, "As tables of Markdown, algorithms and protocols alone")
      ->needs(releases)
      ->excludes("--json");
}

}  // namespace

Result<int> DoctorCommand(CommandLine& line) {
  std::string home;
  CompareNcclOptions compare;
  bool json = false;
  line.app().add_option("--home", home, "Installation to look at (default: the one of this program)");
  line.app().add_flag("--json", json, "As JSON");
  AddCompareOptions(line.app(), &compare);
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_TRY(const Installation installation, FindInstallation(home));
  compare.json = json;
  if (!compare.releases.empty()) return CompareNccl(installation, compare);
  const std::vector<Finding> findings = Examine(installation);
  const bool ok = std::none_of(findings.begin(), findings.end(),
                               [](const Finding& finding) { return finding.verdict == Verdict::kFail; });
  if (json)
    PrintJson(AsJson(findings, ok));
  else
    PrintTable(findings);
  return ok ? kExitOk : kExitResultSaysNo;
}

}  // namespace dynamiccl
