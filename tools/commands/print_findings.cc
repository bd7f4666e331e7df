// SPDX-License-Identifier: Apache-2.0
// The table has one line for each finding and a second one for its advice.
#include "tools/commands/print_findings.h"

#include <unistd.h>

#include <algorithm>

#include "tools/console_log.h"
#include "tools/exit_code.h"
#include "tools/report/json_output.h"
#include "tools/version.h"

namespace dynamiccl {
namespace {

// ANSI escape codes of green, yellow and red.
const char* ColorOf(Verdict verdict) {
  return verdict == Verdict::kOk ? "\033[32m" : verdict == Verdict::kWarn ? "\033[33m" : "\033[31m";
}

void PrintPrintFindingsTable(const std::vector<Finding>& findings) {
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

Json PrintFindingsJson(const std::vector<Finding>& findings, bool ok) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"subject", finding.subject},
                    {"value", finding.value},
                    {"verdict", Name(finding.verdict)},
                    {"advice", finding.advice}});
  }
  return {{"schema", 1}, {"version", kVersion}, {"ok", ok}, {"findings", list}};
}

}  // namespace

int PrintFindings(const std::vector<Finding>& findings, bool json) {
  const bool ok = std::none_of(findings.begin(), findings.end(),
                               [](const Finding& finding) { return finding.verdict == Verdict::kFail; });
  if (json)
    PrintJson(PrintFindingsJson(findings, ok));
  else
    PrintPrintFindingsTable(findings);
  return ok ? kExitOk : kExitResultSaysNo;
}

}  // namespace dynamiccl
