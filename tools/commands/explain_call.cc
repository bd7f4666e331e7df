// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/explain_call.h"

#include <fmt/format.h>

#include <set>

#include "src/collective/size_class.h"
#include "tools/exit_code.h"
#include "tools/explain/emulated_fabric.h"
#include "tools/explain/explanation.h"
#include "tools/report/choice_comparison.h"
#include "tools/report/json_output.h"
#include "traces/format/measurement_file.h"

namespace dynamiccl {
namespace {

// The assumed fabric where --ranks and --nodes are not given: two nodes of eight GPUs.
constexpr int kAssumedRanks = 16;
constexpr int kAssumedNodes = 2;

// Returns a fabric of NVLink and InfiniBand, which is assumed where the user names no fabric.
Result<MeasurementContext> AssumedFabricOf(const ExplainCallOptions& options) {
  const int n_ranks = options.n_ranks == 0 ? kAssumedRanks : options.n_ranks;
  const int n_nodes = options.n_nodes == 0 ? kAssumedNodes : options.n_nodes;
  if (n_ranks % n_nodes == 0) return AssumedFabric(n_ranks, n_nodes);
  return MakeError(ErrorKind::kInvalidArgument, "{} ranks do not lie evenly on {} nodes", n_ranks, n_nodes);
}

// Returns the fabric of a topology of hostccl. The topology itself states the number of nodes.
Result<MeasurementContext> EmulatedFabricOf(const ExplainCallOptions& options) {
  if (options.n_nodes == 0) return EmulatedFabric(options.topology, options.n_ranks);
  return WithHint(MakeError(ErrorKind::kInvalidArgument,
                            "--nodes beside --topology {}, which has its own nodes", options.topology),
                  "leave out one of them");
}

// Returns the fabric that the options name: one of a measurement file, a topology of hostccl, or an assumed
// one.
Result<MeasurementContext> FabricOf(const ExplainCallOptions& options) {
  if (options.measurements.empty())
    return options.topology.empty() ? AssumedFabricOf(options) : EmulatedFabricOf(options);
  DYNAMICCL_TRY(const MeasurementFile file, ReadMeasurementFile(options.measurements));
  std::string names;
  for (const MeasurementContext& context : file.contexts) {
    if (options.topology.empty() || context.topology == options.topology) return context;
    names += " " + context.topology;
  }
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument, "{}: no topology '{}'", options.measurements, options.topology),
      "it has" + names);
}

Result<ConfigQuestion> QuestionOf(const ExplainCallOptions& options) {
  const auto collective = ParseCollective(options.collective);
  if (!collective || static_cast<int>(*collective) >= kTunableCollectives) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--collective '{}'", options.collective),
                    "broadcast, reduce, all_gather, reduce_scatter or all_reduce");
  }
  DYNAMICCL_TRY(const uint64_t bytes, ParseBytes(options.bytes));
  return ConfigQuestion{*collective, bytes, NcclConfigs(*collective)};
}

std::string ReasonText(const Explanation& explanation) {
  switch (explanation.choice.reason) {
    case ChoiceReason::kPromised:
      return fmt::format("all parts of the policy promise at least the gate's {:.1f} %",
                         explanation.gate_percent);
    case ChoiceReason::kNoPromise:
      return fmt::format("no config is promised by all parts of the policy to be {:.1f} % faster",
                         explanation.gate_percent);
    case ChoiceReason::kOutsideTraining:
      return "training did not see such a call or fabric: " + explanation.outside;
    case ChoiceReason::kNothingKnown:
      return "NCCL's cost model cannot price the call";
  }
  return "";
}

// Names who decides the call (a rule, the policy or NCCL), and the config that the call gets.
std::string DeciderText(const Explanation& explanation) {
  if (explanation.rule) {
    return fmt::format("the rule of line {}, over the policy: {}", explanation.rule->line,
                       Name(explanation.rule->config));
  }
  if (explanation.choice.config.leaves_nccl_alone())
    return fmt::format("NCCL: {}", Name(explanation.default_config));
  return fmt::format("the policy: {}", Name(explanation.choice.config));
}

std::string NetworksText(const ExplainedConfig& config) {
  return fmt::format("{:.1f} {:.1f} {:.1f}", config.networks_us[0], config.networks_us[1],
                     config.networks_us[2]);
}

// Returns the mark of a config: it may be NCCL's config, the chosen one, or one outside of what training saw.
std::string MarkOf(const Explanation& explanation, const ExplainedConfig& config) {
  std::string mark;
  if (config.config == explanation.default_config) mark = "NCCL's";
  if (config.config == explanation.choice.config) mark += mark.empty() ? "chosen" : ", chosen";
  if (config.promised && mark.empty()) mark = "promised";
  if (!config.outside.empty()) mark += (mark.empty() ? "" : ", ") + ("outside: " + config.outside);
  return mark;
}

// Returns the configs to show: for each algorithm and protocol the best number of channels, and also NCCL's
// config and the chosen one. With `all`, returns every config.
std::vector<ExplainedConfig> Shown(const Explanation& explanation, bool all) {
  std::set<std::pair<Algorithm, Protocol>> seen;
  std::vector<ExplainedConfig> shown;
  for (const ExplainedConfig& config : explanation.configs) {
    const bool first = seen.insert({config.config.algorithm, config.config.protocol}).second;
    const bool named =
        config.config == explanation.default_config || config.config == explanation.choice.config;
    if (all || first || named) shown.push_back(config);
  }
  return shown;
}

void PrintExplainCall(const Explanation& explanation, const ConfigQuestion& question,
                      const MeasurementContext& fabric, const ExplainCallOptions& options) {
  const uint64_t asked = QuestionOfJobs(question).bytes;
  fmt::print("{} of {}{} on {}\n", Name(question.collective), FormatBytes(question.bytes),
             asked == question.bytes ? "" : fmt::format(", decided as {}", FormatBytes(asked)),
             fabric.topology);
  fmt::print("decides  {}\npolicy   {}\n\n", DeciderText(explanation), ReasonText(explanation));
  fmt::print("{:<22} {:>11} {:>11}  {:<26} {:>10}\n", "config", "NCCL's us", "policy's us", "each network's",
             "trees'");
  for (const ExplainedConfig& config : Shown(explanation, options.all)) {
    fmt::print("{:<22} {:>11.1f} {:>11.1f}  {:<26} {:>10}  {}\n", Name(config.config), config.estimate_us,
               config.predicted_us, NetworksText(config),
               config.trees_us ? fmt::format("{:.1f}", *config.trees_us) : "", MarkOf(explanation, config));
  }
}

Json ExplainCallJson(const ExplainedConfig& config) {
  Json json{{"config", Name(config.config)},       {"estimate_us", config.estimate_us},
            {"predicted_us", config.predicted_us}, {"networks_us", config.networks_us},
            {"promised", config.promised},         {"outside", config.outside}};
  if (config.trees_us) json["trees_us"] = *config.trees_us;
  return json;
}

Json ExplainCallJson(const Explanation& explanation, const ConfigQuestion& question,
                     const MeasurementContext& fabric) {
  Json configs = Json::array();
  for (const ExplainedConfig& config : explanation.configs) configs.push_back(ExplainCallJson(config));
  Json json{{"schema", 1},
            {"fabric", fabric.topology},
            {"collective", Name(question.collective)},
            {"bytes", question.bytes},
            {"decides", explanation.rule                                ? "rule"
                        : explanation.choice.config.leaves_nccl_alone() ? "nccl"
                                                                        : "policy"},
            {"nccl_would_use", Name(explanation.default_config)},
            {"policy_would_use", Name(explanation.choice.config)},
            {"reason", ReasonText(explanation)},
            {"gate_percent", explanation.gate_percent},
            {"configs", configs}};
  if (explanation.rule) json["rule_line"] = explanation.rule->line;
  return json;
}

}  // namespace

void RegisterExplainCall(CLI::App& app, ExplainCallOptions& options) {
  const auto add = [&](const char* name, auto& value, const char* sentence) {
    return app.add_option(name, value, sentence)->group("One call: every config, and who decides");
  };
  add("--collective", options.collective, "all_reduce, reduce_scatter, ...")->capture_default_str();
  add("--bytes", options.bytes, "NCCL's total: 64K, 4M")->capture_default_str();
  add("--rules", options.rules, "Override rules that are in force beside the policy")
      ->check(CLI::ExistingFile);
  add("--topology", options.topology,
      "Which topology of --measurements (default: the first); without measurements a topology of hostccl, as "
      "`run --topology` takes it");
  add("--ranks", options.n_ranks,
      "Without measurements: ranks, on NVLink and InfiniBand or on --topology (default there: its places)")
      ->default_str(std::to_string(kAssumedRanks))
      ->check(CLI::Range(2, 1 << 20));
  add("--nodes", options.n_nodes, "Without measurements and --topology: nodes")
      ->default_str(std::to_string(kAssumedNodes))
      ->check(CLI::Range(1, 1 << 20));
  app.add_flag("--all", options.all,
               "Every number of channels, not only the best of each algorithm and protocol")
      ->group("One call: every config, and who decides");
}

bool AsksAboutCall(const CLI::App& app) {
  for (const char* name :
       {"--collective", "--bytes", "--rules", "--topology", "--ranks", "--nodes", "--all"}) {
    if (app.count(name) > 0) return true;
  }
  return false;
}

Result<int> ExplainCall(const Policy& policy, const ExplainCallOptions& options) {
  DYNAMICCL_TRY(const MeasurementContext fabric, FabricOf(options));
  DYNAMICCL_TRY(const ConfigQuestion question, QuestionOf(options));
  OverrideRules rules;
  if (!options.rules.empty()) {
    DYNAMICCL_TRY(rules, OverrideRules::ReadFile(options.rules));
  }
  const Explanation explanation = Explain(policy, fabric.model, question, &rules);
  if (options.json)
    PrintJson(ExplainCallJson(explanation, question, fabric));
  else
    PrintExplainCall(explanation, question, fabric, options);
  return kExitOk;
}

}  // namespace dynamiccl
