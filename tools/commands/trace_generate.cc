// SPDX-License-Identifier: Apache-2.0
// Registers the settings of all generators and writes the trace (traces/generators).
#include "tools/commands/trace_generate.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "src/base/file_kind.h"
#include "tools/exit_code.h"
#include "tools/report/json_output.h"
#include "traces/format/trace_files.h"
#include "traces/generators/framework_generator.h"
#include "traces/generators/generated_trace.h"

namespace dynamiccl {
namespace {

std::string Frameworks() {
  std::string text;
  for (const FrameworkGenerator* generator : AllFrameworkGenerators())
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", generator->name(), generator->sentence());
  return text;
}

std::string Presets() {
  std::string text;
  for (const ModelPreset& preset : AllModelPresets())
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", preset.name, preset.sentence);
  return text;
}

void PrintRows(std::span<const GeneratorSetting> rows) {
  for (const GeneratorSetting& row : rows) {
    const std::string choices = row.choices.empty() ? "" : fmt::format(" ({})", row.choices);
    fmt::print("  {:<32} {:<12} {}{}\n", row.name, row.standard.empty() ? "-" : row.standard, row.sentence,
               choices);
  }
}

// Prints the settings of one framework, or of all, and of the model presets.
void Explain(const std::string& framework) {
  for (const FrameworkGenerator* generator : AllFrameworkGenerators()) {
    if (!framework.empty() && generator->name() != framework) continue;
    fmt::print("{}: {}\nafter {}\n", generator->name(), generator->sentence(), generator->source());
    PrintRows(generator->settings());
  }
  for (const ModelPreset& preset : AllModelPresets()) {
    fmt::print("--model {}: {}\n", preset.name, preset.sentence);
    PrintRows(preset.settings);
  }
}

Json RowsJson(std::span<const GeneratorSetting> rows) {
  Json list = Json::array();
  for (const GeneratorSetting& row : rows) {
    list.push_back({{"name", row.name},
                    {"default", row.standard},
                    {"choices", row.choices},
                    {"sentence", row.sentence}});
  }
  return list;
}

Json ExplainedJson(const std::string& framework) {
  Json frameworks = Json::array();
  for (const FrameworkGenerator* generator : AllFrameworkGenerators()) {
    if (!framework.empty() && generator->name() != framework) continue;
    frameworks.push_back({{"name", generator->name()},
                          {"sentence", generator->sentence()},
                          {"source", generator->source()},
                          {"settings", RowsJson(generator->settings())}});
  }
  Json models = Json::array();
  for (const ModelPreset& preset : AllModelPresets()) {
    models.push_back(
        {{"name", preset.name}, {"sentence", preset.sentence}, {"settings", RowsJson(preset.settings)}});
  }
  return {{"schema", 1}, {"frameworks", frameworks}, {"models", models}};
}

void Say(const TraceGenerateOptions& options, const ModelShape& model, const GeneratedRun& run) {
  if (options.json) {
    PrintJson({{"schema", 1},
               {"output", options.output},
               {"framework", options.framework},
               {"ranks", options.world.Ranks()},
               {"parameters", model.parameters.size()},
               {"elements", model.Elements()},
               {"steps", run.steps.size()},
               {"calls_of_last_step", run.steps.back().size()}});
    return;
  }
  spdlog::info("{}: {} parameters of {} elements on {} ranks, {} calls in the last step", options.framework,
               model.parameters.size(), model.Elements(), options.world.Ranks(), run.steps.back().size());
}

}  // namespace

CLI::App* AddTraceGenerate(CLI::App& app, TraceGenerateOptions& options) {
  CLI::App* const generate =
      app.add_subcommand("generate", "Write what a framework would issue, with labels, without running it");
  generate->add_option("--framework", options.framework, "Whose calls. " + Frameworks());
  CLI::Option* const model = generate->add_option(
      "--model", options.model, "Preset with settings, gpt:layers=4,hidden=256 (default: gpt). " + Presets());
  generate
      ->add_option("--parameters", options.parameters,
                   "Any other model: a file with a name and dimensions a line, \"fc.weight 1000x2048\"")
      ->excludes(model);
  generate->add_option("--data-parallel", options.world.data, "Data-parallel ranks (default: 2)");
  generate->add_option("--tensor-parallel", options.world.tensor, "Tensor-parallel ranks (default: 1)");
  generate->add_option("--shard-group", options.world.shard,
                       "Hybrid sharding: data-parallel ranks that share one copy (default: all)");
  generate->add_option("--steps", options.steps, "Training steps; the first ones may differ (default: 3)")
      ->check(CLI::Range(1, 10'000));
  generate->add_option("--ranks-per-node", options.ranks_per_node, "Ranks of a node (default: all on one)")
      ->check(CLI::Range(1, 32767));
  generate->add_option("--set", options.settings,
                       "Settings of the framework: dtype=float16,accumulation_steps=4");
  generate->add_flag("--explain", options.explain,
                     "Print the settings with their defaults, and write nothing");
  generate->add_option("-o,--output", options.output, "File to write (.ctrace, or .jsonl for JSON lines)");
  generate->add_flag("--json", options.json, "Say as JSON what was written; with --explain, the settings");
  return generate;
}

Result<int> TraceGenerate(const TraceGenerateOptions& options) {
  if (options.explain) {
    if (options.json)
      PrintJson(ExplainedJson(options.framework));
    else
      Explain(options.framework);
    return kExitOk;
  }
  if (options.framework.empty() || options.output.empty()) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "dynamiccl trace generate: {} is missing",
                              options.framework.empty() ? "--framework" : "--output"),
                    "--explain lists the frameworks and their settings");
  }
  DYNAMICCL_CHECK_OK(CheckFolderOf(options.output));
  DYNAMICCL_TRY(const ModelShape model, options.parameters.empty() ? ParseModel(options.model)
                                                                   : ReadParameterList(options.parameters));
  DYNAMICCL_TRY(const SettingTexts settings, ParseSettingTexts(options.settings, "--set"));
  DYNAMICCL_TRY(const GeneratedRun run,
                GenerateRun(options.framework, model, options.world, settings, options.steps));
  DYNAMICCL_CHECK_OK(WriteTraceFile(options.output, TraceOf(run, options.ranks_per_node)));
  Say(options, model, run);
  return kExitOk;
}

}  // namespace dynamiccl
