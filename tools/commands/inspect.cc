// SPDX-License-Identifier: Apache-2.0
// `dynamiccl inspect`: what is in a policy, and what it would choose on a fabric, with the reason; why one
// call gets the configuration that it gets; or what is in a site store, also as step effects for `train`.
#include "src/base/clock.h"
#include "src/base/file_kind.h"
#include "src/base/sha256.h"
#include "src/base/whole_file.h"
#include "src/collective/size_class.h"
#include "src/decision/site_store/site_store_file.h"
#include "src/policy/config_inference.h"
#include "src/policy/policy_file.h"
#include "tools/command_table.h"
#include "tools/commands/explain_call.h"
#include "tools/exit_code.h"
#include "tools/explain/explanation.h"
#include "tools/launch/installation.h"
#include "tools/report/choice_comparison.h"
#include "tools/report/json_output.h"
#include "tools/report/policy_choices.h"
#include "tools/report/site_store_effects.h"
#include "tools/report/site_store_table.h"
#include "traces/format/measurement_file.h"

namespace dynamiccl {
namespace {

struct InspectOptions {
  std::string policy;
  std::string measurements;  // file with the fabrics that were measured
  bool json = false;
  std::string effects;  // file to write a site store's findings to
  std::string fabric;   // name of the store's fabric in that file
  ExplainCallOptions call;
};

// Returns the fabrics of the measurement file. If the user names no such file, returns one assumed fabric.
Result<std::vector<MeasurementContext>> FabricsOf(const InspectOptions& options) {
  if (options.measurements.empty()) return std::vector{HopperPair()};
  DYNAMICCL_TRY(const MeasurementFile file, ReadMeasurementFile(options.measurements));
  return file.contexts;
}

Json InspectJson(const PolicyChoice& row) {
  return {{"fabric", row.fabric},
          {"collective", Name(row.collective)},
          {"bytes", row.bytes},
          {"choice", Name(row.choice.config)},
          {"nccl_would_use", Name(row.choice.default_config)},
          {"predicted_speed_up", row.choice.predicted_speed_up()},
          {"reason", ReasonText(row.choice.reason)}};
}

void PrintAsJson(const Policy& policy, const std::vector<PolicyChoice>& choices) {
  Json rows = Json::array();
  for (const PolicyChoice& row : choices) rows.push_back(InspectJson(row));
  PrintJson({{"schema", 1},
             {"sha256", ToHex(policy.sha256)},
             {"provenance", policy.provenance},
             {"choices", rows}});
}

void PrintAsText(const Policy& policy, const std::vector<PolicyChoice>& choices) {
  fmt::print("sha256      {}\n{}\n\n", ToHex(policy.sha256), policy.provenance);
  fmt::print("{:<34} {:<14} {:>6}  {:<20} {:<20} {:>9}  {}\n", "fabric", "collective", "bytes", "choice",
             "NCCL would use", "promised", "why");
  for (const PolicyChoice& row : choices) {
    const bool chosen = !row.choice.config.leaves_nccl_alone();
    fmt::print("{:<34} {:<14} {:>6}  {:<20} {:<20} {:>9}  {}\n", row.fabric, Name(row.collective),
               FormatBytes(row.bytes), Name(row.choice.config), Name(row.choice.default_config),
               chosen ? fmt::format("{:+.0f} %", 100 * (row.choice.predicted_speed_up() - 1)) : "",
               ReasonText(row.choice.reason));
  }
}

// Returns whether the file is a site store, by its first bytes.
bool IsSiteStore(const std::string& path) {
  const auto file = ReadWholeFile(path, sizeof(kSiteStoreMagic));
  return file && file->bytes.size() >= sizeof(kSiteStoreMagic) &&
         std::equal(std::begin(kSiteStoreMagic), std::end(kSiteStoreMagic),
                    reinterpret_cast<const char*>(file->bytes.data()));
}

Result<int> InspectSiteStore(const InspectOptions& options) {
  constexpr int64_t kSecondNs = 1'000'000'000;
  DYNAMICCL_TRY(const SiteStore store, ReadSiteStore(options.policy));
  if (!options.effects.empty()) {
    auto effects = EffectsInStore(store, options.fabric);
    if (!effects) return Wrap(effects.error(), options.policy);
    effects->command = "dynamiccl inspect --effects";
    DYNAMICCL_CHECK_OK(WriteMeasurementFile(options.effects, *effects));
  }
  const int64_t now_s = RealtimeNanoseconds() / kSecondNs;
  if (options.json)
    PrintJson(SiteStoreAsJson(store, now_s));
  else
    fmt::print("{}", SiteStoreAsText(store, now_s));
  return kExitOk;
}

Result<int> InspectChoices(const Policy& policy, const InspectOptions& options) {
  DYNAMICCL_TRY(const std::vector<MeasurementContext> fabrics, FabricsOf(options));
  std::vector<PolicyChoice> choices;
  for (const MeasurementContext& fabric : fabrics) {
    for (PolicyChoice& choice : ChoicesOn(policy, fabric)) choices.push_back(std::move(choice));
  }
  if (options.json)
    PrintAsJson(policy, choices);
  else
    PrintAsText(policy, choices);
  return kExitOk;
}

void RegisterInspectOptions(CLI::App& app, InspectOptions& options) {
  app.add_option("policy", options.policy,
                 "Policy file (.dcpolicy), the word starter, or site store (.dcsite)")
      ->required();
  app.add_option("--measurements", options.measurements,
                 "Measurement file whose fabrics the table is made for (default: NCCL's own for Hopper)");
  app.add_flag("--json", options.json, "As JSON");
  app.add_option(
      "--effects", options.effects,
      "Also write the findings of a site store to this file (.measurements), from which `dynamiccl "
      "train` learns what configs do to training steps");
  app.add_option("--fabric", options.fabric, "Name of the store's fabric in that file (default: its digest)")
      ->needs("--effects");
  RegisterExplainCall(app, options.call);
}

}  // namespace

Result<int> InspectCommand(CommandLine& line) {
  InspectOptions options;
  RegisterInspectOptions(line.app(), options);
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_CHECK_OK(CheckFolderOf(options.effects));
  DYNAMICCL_TRY(const Installation installation, FindInstallation());
  DYNAMICCL_TRY(options.policy, PolicyFileOf(installation, options.policy));
  const bool about_call = AsksAboutCall(line.app());
  if (IsSiteStore(options.policy)) {
    if (!about_call) return InspectSiteStore(options);
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{} is a site store, which decides no call alone",
                              options.policy),
                    "name a policy, or leave out the options about one call");
  }
  if (!options.effects.empty())
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--effects: {} is no site store", options.policy),
                    "name the file of DYNAMICCL_SITE_STORE");
  DYNAMICCL_TRY(const std::unique_ptr<const Policy> policy, ReadPolicyFile(options.policy));
  if (!about_call) return InspectChoices(*policy, options);
  options.call.measurements = options.measurements;
  options.call.json = options.json;
  return ExplainCall(*policy, options.call);
}

}  // namespace dynamiccl
