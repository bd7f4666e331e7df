// SPDX-License-Identifier: Apache-2.0
// The sections of the report about the guard: when and why it changed the table of choices, and what its
// experiments cost.
#include <fmt/format.h>

#include <algorithm>

#include "src/collective/size_class.h"
#include "src/decision/guard/guard.h"
#include "src/decision/guard/waited_shares.h"
#include "tools/report/run_report.h"

namespace dynamiccl {
namespace {

// The most rows that the page's table of versions has, so that the page stays readable. versions.csv has all
// versions.
constexpr size_t kShownVersions = 60;

std::string ChangesText(const std::vector<std::string>& changes) {
  // The most changed keys that one row names. A version may change every key.
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < changes.size() && i < kShown; ++i) text += (i == 0 ? "" : "; ") + changes[i];
  if (changes.size() > kShown) text += fmt::format("; {} more", changes.size() - kShown);
  return text.empty() ? "trials, or keys not called again" : text;
}

std::string VersionTableHtml(const RunReport& run, const std::map<uint32_t, std::string>& reasons) {
  HtmlTable table({{"at", true}, {"call", true}, {"version", true}, {"why"}, {"what changed"}});
  for (size_t i = 0; i < run.versions.size() && i < kShownVersions; ++i) {
    const TableVersion& version = run.versions[i];
    const std::string* const reason = ReasonOf(version, reasons);
    table.AddRow({fmt::format("{:.3f} s", static_cast<double>(version.since_ns) * 1e-9),
                  std::to_string(version.call_number), fmt::format("v{}", version.version),
                  reason == nullptr ? "not known" : *reason, ChangesText(version.changes)});
  }
  const size_t hidden = run.versions.size() - std::min(run.versions.size(), kShownVersions);
  return table.Html() +
         (hidden > 0 ? HtmlParagraph(fmt::format("{} more versions are not shown.", hidden)) : "");
}

// A metric's label as words: "slower_than_nccl" becomes "slower than nccl".
std::string WordsOf(std::string reason) {
  std::replace(reason.begin(), reason.end(), '_', ' ');
  return reason;
}

// Shows what the guard's experiments cost, beside the budget that the guard must keep (src/decision/guard).
std::string AccountTable(const GuardAccount& account) {
  HtmlTable table({{"what"}, {"value", true}});
  const double all = account.total_guarded_s();
  for (const auto& [criticality, seconds] : account.guarded_s)
    table.AddRow({"time of guarded calls, " + criticality, fmt::format("{:.4g} s", seconds)});
  table.AddRow({"cost of trials and timing, estimated", fmt::format("{:.4g} s", account.probing_s)});
  if (all > 0)
    table.AddRow({"of the guarded calls' time", fmt::format("{:.2f} %", 100 * account.probing_s / all)});
  table.AddRow(
      {fmt::format("budget: {:.1f} % of the steps' time, {:.0f} steps at first, {:.0f} % of what was saved",
                   100 * kProbingBudget, kProbingCreditSteps, 100 * kProbingOfSavings),
       ""});
  if (account.timing_s > 0)
    table.AddRow({"host time for taking times", fmt::format("{:.3g} s", account.timing_s)});
  for (const auto& [reason, count] : account.versions)
    table.AddRow({"versions: " + WordsOf(reason), fmt::format("{:.0f}", count)});
  table.AddRow({"versions that ranks did not agree to", fmt::format("{:.0f}", account.failed_versions)});
  table.AddRow({"calls that the guard did not hear of", fmt::format("{:.0f}", account.calls_lost)});
  return table.Html();
}

// A table with the last recorded exposed share of each key: the part of its time for which the program
// waited.
std::string WaitedTable(const RunReport& run) {
  HtmlTable table({{"collective"}, {"bytes", true}, {"role"}, {"the program waits for", true}, {"class"}});
  std::map<std::tuple<Collective, uint64_t, Role>, double> last;
  for (const WaitedShareView& share : run.waited_shares)
    last[{share.collective, share.bytes, share.role}] = share.share;
  for (const auto& [key, share] : last) {
    const auto& [collective, bytes, role] = key;
    table.AddRow({std::string(Name(collective)), FormatBytes(bytes), std::string(Name(role)),
                  fmt::format("{:.0f} %", 100 * share),
                  IsLatencyCritical(role, CriticalityOf(share)) ? "latency-critical" : ""});
  }
  return table.empty() ? "" : "<h4>What the program waits for</h4>\n" + table.Html();
}

}  // namespace

HtmlSection StructureFirings(const RunReport& run, const std::map<uint32_t, std::string>& reasons) {
  const std::string title = "Structure firings";
  if (run.versions.empty()) {
    return {
        "", title,
        HtmlParagraph("None: one table from the first call to the last. Only mode adaptive makes new ones "
                      "(DYNAMICCL_MODE=adaptive with a policy): when the fabric changes, when a choice turns "
                      "out slower "
                      "than NCCL's, and for trials.")};
  }
  const std::string how =
      reasons.empty()
          ? HtmlParagraph(
                "Why stands in the job's log: keep it (DYNAMICCL_LOG=info, or NCCL_DEBUG=INFO) as "
                "job.log and give it to `dynamiccl report` too.")
          : "";
  return {"", title, how + VersionTableHtml(run, reasons)};
}

HtmlSection GuardSection(const RunReport& run, const GuardAccount& account) {
  std::string html;
  if (account.guarded)
    html = AccountTable(account);
  else
    html = HtmlParagraph(
        "No metrics of a guard are among the inputs: run the job with DYNAMICCL_MODE=adaptive, a policy and "
        "DYNAMICCL_METRICS=m.%r.prom, and give the m.*.prom files to `dynamiccl report` too.");
  const int64_t trials = run.CallsDecidedBy(DecidedBy::kTrial);
  const int64_t samples = run.CallsDecidedBy(DecidedBy::kSample);
  if (trials + samples > 0)
    html += HtmlParagraph(fmt::format("{} calls of {} were trials, {} were left to NCCL to compare with.",
                                      trials, run.summary.calls, samples));
  return {"", "The guard's account", html + WaitedTable(run)};
}

}  // namespace dynamiccl
