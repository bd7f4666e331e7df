// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/job_settings.h"

#include <dlfcn.h>
#include <strings.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "plugin/border/nccl_variable.h"
#include "src/base/launch_variables.h"
#include "src/base/log.h"
#include "src/base/settings.h"
#include "src/base/sha256.h"
#include "src/decision/rule_turns.h"

namespace dynamiccl {
namespace {

// Variables that change which configurations NCCL offers or how it weighs them, or that move calls to another
// thread. Ranks with different values do not agree.
constexpr const char* kPins[] = {"NCCL_ALGO",
                                 "NCCL_PROTO",
                                 "NCCL_MIN_NCHANNELS",
                                 "NCCL_MAX_NCHANNELS",
                                 "NCCL_MIN_CTAS",
                                 "NCCL_MAX_CTAS",
                                 "NCCL_NTHREADS",
                                 "NCCL_LL128_NTHREADS",
                                 "NCCL_BUFFSIZE",
                                 "NCCL_LL_BUFFSIZE",
                                 "NCCL_LL128_BUFFSIZE",
                                 "NCCL_THREAD_THRESHOLDS",
                                 "NCCL_PAT_ENABLE",
                                 "NCCL_NVLS_ENABLE",
                                 "NCCL_COLLNET_ENABLE",
                                 "NCCL_CTA_POLICY",
                                 "NCCL_COMM_BLOCKING",
                                 "NCCL_ENQUEUE_REARCH_ENABLE",
                                 "NCCL_SINGLE_PROC_MEM_REG_ENABLE"};

// Returns the value of the first variable that holds a number from 0 to a million. Launchers use different
// names.
template <size_t N>
int FirstNumber(const char* const (&names)[N], int fallback) {
  for (const char* name : names) {
    const char* text = ::secure_getenv(name);
    char* end = nullptr;
    const long value = text != nullptr ? std::strtol(text, &end, 10) : -1;
    if (text != nullptr && end != text && *end == '\0' && value >= 0 && value <= 1'000'000) {
      return static_cast<int>(value);
    }
  }
  return fallback;
}

bool IsSet(const char* name) {
  const char* value = ::secure_getenv(name);
  return value != nullptr && *value != '\0';
}

// Without DYNAMICCL_MODE the mode follows from the other settings: frozen if they name choices, observe if
// they name something to record, else off.
Mode ReadMode(const JobSettings& settings) {
  const std::string text = TextSetting(Setting::kMode);
  if (text.empty()) {
    const bool chooses = !settings.policy_path.empty() || !settings.rules_path.empty() ||
                         !settings.rules_in_turn.empty() || !settings.decisions_path.empty();
    if (chooses) return Mode::kFrozen;
    return settings.trace_path.empty() && settings.metrics_path.empty() ? Mode::kOff : Mode::kObserve;
  }
  for (const Mode mode : {Mode::kOff, Mode::kObserve, Mode::kFrozen, Mode::kAdaptive}) {
    if (::strcasecmp(text.c_str(), Name(mode)) == 0) return mode;
  }
  Log(LogLevel::kWarn, "DYNAMICCL_MODE='{}' is not off, observe, frozen or adaptive: staying off", text);
  return Mode::kOff;
}

int ReadTimeout() {
  const auto value = IntegerSetting(Setting::kAttestTimeoutMs);
  if (value && *value > 0 && *value <= 600'000) return static_cast<int>(*value);
  Log(LogLevel::kWarn, "DYNAMICCL_ATTEST_TIMEOUT_MS is not a number from 1 to 600000: using 2000");
  return 2000;
}

bool ReadReproducible(const JobSettings& settings) {
  const auto value = BoolSetting(Setting::kReproducible);
  if (!value) Log(LogLevel::kWarn, "{}; this run is not saved", value.error().message);
  const bool reproducible = value.value_or(false);
  if (reproducible && settings.decisions_path.empty())
    Log(LogLevel::kWarn, "DYNAMICCL_REPRODUCIBLE=1 without DYNAMICCL_DECISIONS: choices are not saved");
  return reproducible;
}

// Mode adaptive needs times, so it times collectives unless the user forbids it.
Timed ReadTimes(Mode mode) {
  const std::string text = TextSetting(Setting::kTimes);
  if (text.empty()) return mode == Mode::kAdaptive ? Timed::kWindows : Timed::kNone;
  if (text == "all") return Timed::kAll;
  if (text == "1") return Timed::kWindows;
  if (text != "0") Log(LogLevel::kWarn, "DYNAMICCL_TIMES={} is none of 0, 1 and all; nothing is timed", text);
  return Timed::kNone;
}

// Returns the paths of the rules files that take turns. With fewer than two paths the setting counts as
// unset.
std::vector<std::string> ReadRulesInTurn() {
  const std::string text = TextSetting(Setting::kRulesInTurn);
  if (text.empty()) return {};
  std::vector<std::string> paths(1);
  for (const char each : text) {
    if (each == ':')
      paths.emplace_back();
    else
      paths.back() += each;
  }
  if (paths.size() >= 2 && paths.size() <= kMaxRuleSets) return paths;
  Log(LogLevel::kWarn, "DYNAMICCL_RULES_IN_TURN names {} files, not 2 to {}: it is not used", paths.size(),
      kMaxRuleSets);
  return {};
}

uint32_t ReadTurnSteps() {
  const auto value = IntegerSetting(Setting::kTurnSteps);
  if (value && *value >= kLeastTurnSteps && *value <= kMaxTurnSteps) return static_cast<uint32_t>(*value);
  Log(LogLevel::kWarn, "DYNAMICCL_TURN_STEPS is not a number from {} to {}: using 3", kLeastTurnSteps,
      kMaxTurnSteps);
  return 3;
}

// Mode adaptive becomes mode frozen in three cases: the choices are to be reproduced, they come from an
// earlier run, or rules take turns. In these cases nothing else may change the choices.
Mode FrozenIfRepeatable(const JobSettings& settings, Mode mode) {
  if (mode != Mode::kAdaptive) return mode;
  if (!settings.rules_in_turn.empty()) {
    Log(LogLevel::kWarn,
        "DYNAMICCL_MODE=adaptive is frozen here: rules take turns, so nothing else may change");
    return Mode::kFrozen;
  }
  if (!settings.reproducible && settings.decisions_path.empty()) return mode;
  Log(LogLevel::kWarn, "DYNAMICCL_MODE=adaptive is frozen here: the choices are to be those of another run");
  return Mode::kFrozen;
}

void WarnAboutUnknownSettings() {
  for (const UnknownSetting& unknown : UnknownSettings(environ)) {
    Log(LogLevel::kWarn, "{} is not a setting; did you mean {}?", unknown.name, unknown.nearest);
  }
}

// Returns the path of the object that contains this code, without symbolic links; empty if the loader does
// not know it.
std::string OwnPath() {
  static const char inside = 0;
  Dl_info own{};
  if (::dladdr(&inside, &own) == 0 || own.dli_fname == nullptr) return {};
  const std::unique_ptr<char, decltype(&::free)> path(::realpath(own.dli_fname, nullptr), &::free);
  return path ? path.get() : "";
}

// The word "starter" stands for the policy in share/dynamiccl of this object's installation; anything else is
// a path.
std::string PolicyPathOf(const std::string& setting) {
  if (setting != "starter") return setting;
  const std::string own = OwnPath();
  // lib/libdynamiccl.so, or lib/<platform>/libdynamiccl.so.
  std::string folder = own.substr(0, own.rfind('/'));
  std::string path;
  for (int above = 0; above < 2; ++above) {
    folder = folder.substr(0, folder.rfind('/'));
    path = folder + "/share/dynamiccl/starter.dcpolicy";
    if (::access(path.c_str(), F_OK) == 0) break;
  }
  return path;
}

}  // namespace

const char* Name(Mode mode) {
  switch (mode) {
    case Mode::kAdaptive:
      return "adaptive";
    case Mode::kFrozen:
      return "frozen";
    case Mode::kObserve:
      return "observe";
    case Mode::kOff:
      break;
  }
  return "off";
}

JobSettings ReadJobSettings() {
  SetLogLevel(ParseLogLevel(TextSetting(Setting::kLog), LogLevel::kWarn));
  WarnAboutUnknownSettings();
  JobSettings settings;
  settings.policy_path = PolicyPathOf(TextSetting(Setting::kPolicy));
  settings.rules_path = TextSetting(Setting::kRules);
  settings.rules_in_turn = ReadRulesInTurn();
  settings.turn_steps = ReadTurnSteps();
  settings.trace_path = TextSetting(Setting::kTrace);
  settings.decision_log_path = TextSetting(Setting::kDecisionLog);
  settings.decisions_path = TextSetting(Setting::kDecisions);
  settings.metrics_path = TextSetting(Setting::kMetrics);
  settings.tuner_plugin = PluginOfUser("NCCL_TUNER_PLUGIN");
  settings.site_store_path = TextSetting(Setting::kSiteStore);
  settings.values_path = TextSetting(Setting::kValues);
  settings.attest_timeout_ms = ReadTimeout();
  settings.rank = FirstNumber(kRankVariables, -1);
  settings.world = FirstNumber(kWorldVariables, 0);
  settings.local_world = FirstNumber(kLocalWorldVariables, 0);
  settings.reproducible = ReadReproducible(settings);
  settings.mode = FrozenIfRepeatable(settings, ReadMode(settings));
  settings.times = ReadTimes(settings.mode);
  return settings;
}

bool NamesThisObject(const std::string& plugin) {
  // NCCL accepts every prefix of the word STATIC_PLUGIN.
  const bool is_static = ::strncasecmp("STATIC_PLUGIN", plugin.c_str(), plugin.size()) == 0;
  return plugin.empty() || is_static || plugin == "dynamiccl" ||
         plugin.ends_with("libnccl-tuner-dynamiccl.so") ||
         plugin.ends_with("libnccl-profiler-dynamiccl.so") || plugin.ends_with("libdynamiccl.so");
}

std::string KeptAs(const std::string& variable) {
  return "_DYNAMICCL_" + variable;
}

std::string PluginOfUser(const std::string& variable) {
  std::string named = NcclVariable(variable).value_or("");
  const char* kept = ::secure_getenv(KeptAs(variable).c_str());
  return kept != nullptr && !named.empty() && NamesThisObject(named) ? kept : named;
}

bool OpensLibraryNamesOnly(int nccl_version) {
  return nccl_version == 22703;
}

std::string OwnPluginName(int nccl_version) {
  constexpr const char* kInProcess = "STATIC_PLUGIN";
  constexpr int kKnowsInProcess = 22200;
  // With this name the dynamic linker finds this library, which is already loaded.
  if (OpensLibraryNamesOnly(nccl_version)) return "libdynamiccl.so";
  if (nccl_version == 0 || nccl_version >= kKnowsInProcess) return kInProcess;
  const std::string own = OwnPath();
  return own.empty() ? kInProcess : own;
}

std::string PinnedByUser(const JobSettings& settings) {
  std::string text;
  for (const char* name : kPins) {
    if (IsSet(name)) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, ::secure_getenv(name));
  }
  if (!NamesThisObject(settings.tuner_plugin)) {
    text += fmt::format("{}NCCL_TUNER_PLUGIN={}", text.empty() ? "" : " ", settings.tuner_plugin);
  }
  if (text.empty()) return "none";
  const Sha256Digest digest = Sha256Of(std::as_bytes(std::span(text)));
  return fmt::format("{} ({})", text.substr(0, 80), ToHex(digest).substr(0, 16));
}

bool PairsArePinned() {
  return IsSet("NCCL_ALGO") || IsSet("NCCL_PROTO");
}

bool ChannelsArePinned() {
  return IsSet("NCCL_MIN_NCHANNELS") || IsSet("NCCL_MAX_NCHANNELS") || IsSet("NCCL_MIN_CTAS") ||
         IsSet("NCCL_MAX_CTAS");
}

}  // namespace dynamiccl
