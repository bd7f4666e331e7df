// SPDX-License-Identifier: Apache-2.0
// Judges settings of DynamICCL by what it logged, recorded and decided.
#include <fmt/format.h>

#include <algorithm>

#include "src/base/nearest_name.h"
#include "src/base/settings.h"
#include "src/collective/legal_configs.h"
#include "tools/doctor/unreachable_rules.h"
#include "tools/receipt/setting_check.h"

namespace dynamiccl {
namespace {

constexpr const char* kBringTrace =
    "a trace of the job, `dynamiccl record -o job.ctrace -- LAUNCH`, and what it writes to standard error";

const SettingRow* FindSetting(std::string_view name) {
  const auto rows = AllSettings();
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const SettingRow& one) { return name == one.name; });
  return row == rows.end() ? nullptr : &*row;
}

// Returns the first line of DynamICCL that contains `words`; null without one.
const LogLine* OwnLine(const NcclLog& log, std::string_view words) {
  const auto found = std::find_if(log.notes.begin(), log.notes.end(), [&](const LogLine& line) {
    const bool own = line.text.find("DynamICCL: ") != std::string::npos ||
                     line.text.find("dynamiccl: ") != std::string::npos;
    return own && line.text.find(words) != std::string::npos;
  });
  return found == log.notes.end() ? nullptr : &*found;
}

Receipt UnknownName(const Judged& judged) {
  std::vector<std::string_view> known;
  for (const SettingRow& row : AllSettings()) known.emplace_back(row.name);
  return NotInEffect(
      judged, "",
      fmt::format("DynamICCL has no such setting; did you mean {}?", NearestName(judged.asked.name, known)),
      judged.asked.from.file.empty() ? nullptr : &judged.asked.from);
}

std::string Share(const Evidence& evidence, DecidedBy who) {
  return fmt::format("{} of {} decisions are the {}'s", evidence.CountOf(who), evidence.n_decisions(),
                     Name(who));
}

// Returns the file in which the decisions stand. Call it only if the evidence has decisions.
const LogLine& DecisionsAt(const Evidence& evidence) {
  if (evidence.decisions.empty()) return evidence.counted->line;
  return evidence.trace ? *evidence.trace : *evidence.decision_log;
}

// Returns a refutation if DynamICCL's own log says that it left every choice to NCCL, whatever was asked.
std::optional<Receipt> JudgeKeptChoice(const Judged& judged) {
  for (const std::string_view words : {"keeps NCCL's choice: ", "NCCL's choice stays"}) {
    if (const LogLine* const line = OwnLine(judged.log(), words))
      return NotInEffect(judged, "NCCL's own choice", "DynamICCL left the choice to NCCL and says why", line);
  }
  return std::nullopt;
}

std::optional<Receipt> JudgeMode(const Judged& judged) {
  const Evidence& evidence = judged.evidence;
  const std::string& mode = judged.asked.value;
  constexpr std::string_view kModes[] = {"off", "observe", "frozen", "adaptive"};
  const auto known = std::find_if(std::begin(kModes), std::end(kModes),
                                  [&](auto one) { return EqualIgnoringCase(mode, one); });
  if (known == std::end(kModes))
    return NotInEffect(judged, "mode off",
                       fmt::format("'{}' is none of off, observe, frozen and adaptive", mode),
                       judged.asked.from.file.empty() ? nullptr : &judged.asked.from);
  if (evidence.counted && evidence.counted->mode != *known)
    return NotInEffect(judged, "mode " + evidence.counted->mode, "another mode is in use",
                       &evidence.counted->line);
  if (evidence.n_decisions() == 0) {
    if (evidence.counted) return InEffect(judged, "mode " + evidence.counted->mode, evidence.counted->line);
    if (*known == "observe" && evidence.trace)
      return InEffect(judged, "recorded, and nothing decided", *evidence.trace);
    return *known == "frozen" || *known == "adaptive" ? JudgeKeptChoice(judged) : std::nullopt;
  }
  const LogLine& at = DecisionsAt(evidence);
  const uint64_t tried = evidence.CountOf(DecidedBy::kTrial) + evidence.CountOf(DecidedBy::kSample) +
                         evidence.CountOf(DecidedBy::kGuard);
  const uint64_t chosen = evidence.CountOf(DecidedBy::kPolicy) + evidence.CountOf(DecidedBy::kRule) + tried;
  if (*known == "adaptive" && tried > 0)
    return InEffect(judged, fmt::format("{} decisions are trials or the guard's", tried), at);
  if (*known == "frozen" && chosen > 0 && tried == 0)
    return InEffect(judged, fmt::format("{} decisions", chosen), at);
  if (evidence.counted)
    return InEffect(
        judged,
        fmt::format("mode {}, and all {} decisions are NCCL's own choice", *known, evidence.n_decisions()),
        evidence.counted->line);
  if ((*known == "off" || *known == "observe") && chosen > 0)
    return NotInEffect(judged, fmt::format("{} decisions", chosen), "another mode is in use", &at);
  return JudgeKeptChoice(judged);
}

std::optional<Receipt> JudgeRulesSetting(const Judged& judged) {
  const Evidence& evidence = judged.evidence;
  if (evidence.CountOf(DecidedBy::kRule) > 0)
    return InEffect(judged, Share(evidence, DecidedBy::kRule), DecisionsAt(evidence));
  if (auto receipt = JudgeKeptChoice(judged)) return receipt;
  if (evidence.n_decisions() == 0) return std::nullopt;
  return NotInEffect(judged, Share(evidence, DecidedBy::kRule),
                     "no rule decided a call: none matches, or NCCL offered none of them",
                     &DecisionsAt(evidence));
}

std::optional<Receipt> JudgePolicySetting(const Judged& judged) {
  const Evidence& evidence = judged.evidence;
  if (evidence.CountOf(DecidedBy::kPolicy) > 0)
    return InEffect(judged, Share(evidence, DecidedBy::kPolicy), DecisionsAt(evidence));
  if (auto receipt = JudgeKeptChoice(judged)) return receipt;
  if (!evidence.counted) return std::nullopt;
  const CountedCalls& counted = *evidence.counted;
  if (counted.policy.empty())
    return NotInEffect(judged, "no policy", "DynamICCL loaded none; its line on standard error says why",
                       &counted.line);
  return InEffect(judged,
                  fmt::format("policy {} is loaded, and decided none of {} calls",
                              counted.policy.substr(0, 16), evidence.n_decisions()),
                  counted.line);
}

// Judges a setting that names an output file. The file proves it; DynamICCL's line `failure` refutes it.
std::optional<Receipt> JudgeFile(const Judged& judged, const std::optional<LogLine>& file,
                                 std::string_view failure) {
  if (const LogLine* const line = OwnLine(judged.log(), failure))
    return NotInEffect(judged, "no file", "it could not be written", line);
  if (file) return InEffect(judged, file->text, *file);
  return std::nullopt;
}

// The metrics of a process show how many calls were timed.
std::optional<Receipt> JudgeTimes(const Judged& judged) {
  const auto& counted = judged.evidence.counted;
  if (!counted || counted->timed.empty()) return std::nullopt;
  uint64_t timed = 0;
  for (const ChosenCalls& calls : counted->timed) timed += calls.calls;
  if (judged.asked.value == "0")
    return NotInEffect(judged, fmt::format("{} calls were timed", timed), "times are on", &counted->line);
  return InEffect(judged, fmt::format("{} calls were timed", timed), counted->line);
}

std::optional<Receipt> JudgeKnown(const Judged& judged, Setting setting) {
  switch (setting) {
    case Setting::kMode:
      return JudgeMode(judged);
    case Setting::kRules:
      return JudgeRulesSetting(judged);
    case Setting::kPolicy:
      return JudgePolicySetting(judged);
    case Setting::kTrace:
      return JudgeFile(judged, judged.evidence.trace, "nothing is recorded");
    case Setting::kTimes:
      return JudgeTimes(judged);
    case Setting::kMetrics:
      if (!judged.evidence.counted) return std::nullopt;
      return InEffect(judged, judged.evidence.counted->line.text, judged.evidence.counted->line);
    case Setting::kDecisionLog:
      return JudgeFile(judged, judged.evidence.decision_log, "no decision log");
    default:
      return std::nullopt;
  }
}

// True if the files hold all values of a call on which the rule depends.
bool CanMatch(const OverrideRule& rule, const Evidence& evidence) {
  if (rule.n_pipe_ops || (rule.memory && !evidence.knows_memory)) return false;
  if ((rule.role || rule.phase || rule.stage) && !evidence.knows_structure) return false;
  return evidence.knows_nodes || (!rule.n_nodes && !rule.n_ranks);
}

Receipt JudgeRule(const Judged& judged, const OverrideRule& rule) {
  const Evidence& evidence = judged.evidence;
  uint64_t matching = 0, decided = 0;
  for (const SeenDecision& decision : evidence.decisions) {
    if (!rule.Matches(decision.subject)) continue;
    ++matching;
    decided += decision.decided_by == DecidedBy::kRule;
  }
  if (matching == 0) return NotInEffect(judged, "", "no call of the job matches it", &DecisionsAt(evidence));
  if (decided == 0)
    return NotInEffect(
        judged, fmt::format("{} calls match", matching),
        "rules decided none of them: a first call, a pin or what NCCL does not offer stays NCCL's",
        &DecisionsAt(evidence));
  return InEffect(judged, fmt::format("rules decided {} of {} calls that match", decided, matching),
                  DecisionsAt(evidence));
}

// Judges a rule by the metrics, which count decisions for each collective but not for each rule. They prove
// the rule only if it is the only one for its collective, and refute it if no rule decided a call of the
// collective.
Receipt JudgeRuleByCounts(const Judged& judged, const OverrideRule& rule, const RulesFile& file) {
  const CountedCalls& counted = *judged.evidence.counted;
  uint64_t asked = 0, decided = 0;
  for (const auto& [of, count] : counted.decisions) {
    if (of.first != rule.collective) continue;
    asked += count;
    decided += of.second == DecidedBy::kRule ? count : 0;
  }
  if (asked == 0)
    return NotInEffect(judged, "", fmt::format("NCCL asked for no {}", Name(rule.collective)), &counted.line);
  const std::string calls = fmt::format("{} of {} calls of {}", decided, asked, Name(rule.collective));
  if (decided == 0) return NotInEffect(judged, "", "rules decided " + calls, &counted.line);
  const auto& rules = file.rules.rules();
  const auto alike = std::count_if(
      rules.begin(), rules.end(), [&](const OverrideRule& one) { return one.collective == rule.collective; });
  if (alike == 1) return InEffect(judged, "it decided " + calls, counted.line);
  return NotProvable(judged, fmt::format("{} rules decided {}, and the counts hold no rule", alike, calls),
                     kBringTrace);
}

// Judges one rule by single decisions if the files have them, else by the metrics.
Receipt JudgeRuleOf(const Judged& judged, const OverrideRule& rule, const RulesFile& file) {
  const Evidence& evidence = judged.evidence;
  if (evidence.decisions.empty()) return JudgeRuleByCounts(judged, rule, file);
  if (CanMatch(rule, evidence)) return JudgeRule(judged, rule);
  return NotProvable(judged, "the files do not tell all that it asks of a call", "a trace of the job");
}

}  // namespace

Receipt JudgeOwnSetting(const Judged& judged) {
  const SettingRow* const row = FindSetting(judged.asked.name);
  if (row == nullptr) return UnknownName(judged);
  // DynamICCL names a setting in its log only to complain about it.
  if (const LogLine* const line = OwnLine(judged.log(), judged.asked.name))
    return NotInEffect(judged, "", "DynamICCL does not use it as it is set", line);
  if (auto receipt = JudgeKnown(judged, row->id)) return *receipt;
  return NotProvable(judged, "the files do not show whether it was used", kBringTrace);
}

std::vector<Receipt> JudgeRules(const Evidence& evidence, const RulesFile& file) {
  std::vector<Receipt> receipts;
  if (evidence.n_decisions() == 0) return receipts;
  const std::vector<UnreachableRule> unreachable = UnreachableRules(file.rules.rules());
  for (const OverrideRule& rule : file.rules.rules()) {
    const AskedSetting asked{"rule",
                             fmt::format("{} {}", Name(rule.collective), Describe(rule.config)),
                             {file.path, static_cast<size_t>(rule.line), ""}};
    const Judged judged{asked, evidence, {}};
    const auto hidden = std::find_if(unreachable.begin(), unreachable.end(),
                                     [&](const UnreachableRule& one) { return one.line == rule.line; });
    if (hidden != unreachable.end())
      receipts.push_back(NotInEffect(
          judged, "", fmt::format("line {} takes all of its calls", hidden->taken_by_line), &asked.from));
    else
      receipts.push_back(JudgeRuleOf(judged, rule, file));
  }
  return receipts;
}

}  // namespace dynamiccl
