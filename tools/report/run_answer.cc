// SPDX-License-Identifier: Apache-2.0
// The first section of the report. For each run, one or two sentences say whose choices the run used and what
// the choices gained.
#include <fmt/format.h>

#include <algorithm>

#include "tools/report/run_report.h"

namespace dynamiccl {
namespace {

// Differences of communication time below this share are not worth a change of settings: 2 %, as in
// `dynamiccl why`.
constexpr double kWorthIt = 0.02;

std::string Percent(double share) {
  return fmt::format("{:+.0f} %", 100 * share);
}

// Returns a text that says for how many calls NCCL chose and for how many another choice was used.
std::string ChoicesText(const RunReport& run) {
  int64_t answers = 0, ours = 0;
  for (const RunKeyAccount& account : run.keys) {
    for (const auto& [config, calls] : account.configs) {
      answers += calls;
      if (!config.leaves_nccl_alone()) ours += calls;
    }
  }
  if (ours == 0) return "NCCL chose for every call.";
  return fmt::format("{:.0f} % of the calls got another choice than NCCL's own.",
                     100 * static_cast<double>(ours) / static_cast<double>(answers));
}

// Compares the run's choices, and the best choices, with NCCL's own choices. All times are those of the
// sweep.
std::string AgainstSweep(const Regret& regret) {
  const double ours = regret.chosen_s / regret.default_s - 1;
  const double best = regret.best_s / regret.default_s - 1;
  std::string text = fmt::format("By the sweep of {} ", regret.topology);
  if (best > -kWorthIt)
    text += fmt::format("nothing is to be won: the best choices take {} of NCCL's time", Percent(best));
  else
    text += fmt::format("the best choices take {} of NCCL's time", Percent(best));
  if (std::abs(ours) >= kWorthIt) text += fmt::format(", those of this run {}", Percent(ours));
  return text + ".";
}

// Compares times for the sizes that the run timed both with NCCL's choice and with another choice. Empty if
// there are no such sizes.
std::string TimedBothWays(const RunReport& run) {
  int faster = 0, slower = 0, noise = 0;
  for (const RunKeyAccount& account : run.keys) {
    if (account.default_us.repeats == 0 || account.ours_us.repeats == 0) continue;
    if (!ClearlyDiffer(account.default_us, account.ours_us))
      ++noise;
    else
      ++(account.ours_us.median < account.default_us.median ? faster : slower);
  }
  if (faster + slower + noise == 0) return "";
  return fmt::format(
      "Of {} sizes timed with both, the other choice was faster in {}, slower in {}, and not told apart in "
      "{}.",
      faster + slower + noise, faster, slower, noise);
}

std::string AnswerOf(const RunReport& run) {
  std::string text = fmt::format("{}: {}", run.name, ChoicesText(run));
  bool judged = false;
  for (const Regret& regret : run.regrets) {
    if (regret.counted_calls == 0 || regret.default_s <= 0) continue;
    text += " " + AgainstSweep(regret);
    judged = true;
  }
  if (const std::string timed = TimedBothWays(run); !timed.empty()) {
    text += " " + timed;
    judged = true;
  }
  if (!judged)
    text +=
        " Whether others would be faster is not in these files: dynamiccl pilot -- LAUNCH tries them in the "
        "job, and a sweep given together with the trace prices them.";
  return text;
}

}  // namespace

HtmlSection Answer(const std::vector<RunReport>& runs) {
  std::vector<std::string> answers;
  for (const RunReport& run : runs) answers.push_back(AnswerOf(run));
  return {"", "The answer", HtmlList(answers)};
}

}  // namespace dynamiccl
