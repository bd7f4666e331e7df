// SPDX-License-Identifier: Apache-2.0
// Judges settings that name a tuner or profiler plugin: whether NCCL found the plugin and uses it.
#include <fmt/format.h>

#include "tools/receipt/setting_check.h"

namespace dynamiccl {
namespace {

// The texts by which NCCL's releases log that a plugin is in use and that a plugin lacks its symbol.
struct PluginWords {
  std::string_view kind;  // "TUNER/Plugin: "
  std::string_view used[2];
  std::string_view missing_symbol;
  const char* without;  // what happens without the plugin
};
constexpr PluginWords kTuner = {"TUNER/Plugin: ",
                                {"TUNER/Plugin: Using tuner plugin ", "TUNER/Plugin: Using "},
                                "Failed to find ncclTunerPlugin_v2",
                                "NCCL's own choice"};
constexpr PluginWords kProfiler = {"PROFILER/Plugin: ",
                                   {"PROFILER/Plugin: Loaded ", "PROFILER/Plugin: loaded "},
                                   "failed to find ncclProfiler_v1",
                                   "no profiler"};

// Returns the line that names the plugin in use; null without one.
const LogLine* PluginInUse(const NcclLog& log, const PluginWords& words) {
  for (const LogLine& line : log.notes) {
    for (const std::string_view used : words.used) {
      if (line.text.starts_with(used) && line.text.find("internal") == std::string::npos) return &line;
    }
  }
  return nullptr;
}

std::optional<Receipt> JudgeNoPlugin(const Judged& judged, const LogLine* used) {
  if (used != nullptr) return NotInEffect(judged, used->text, "a plugin is in use", used);
  if (!judged.was_read() || judged.WholeInit() == nullptr) return std::nullopt;
  return InEffect(judged, "no plugin", judged.reads.front()->line);
}

std::optional<Receipt> CheckPlugin(const Judged& judged, const PluginWords& words) {
  const NcclLog& log = judged.log();
  const std::string& asked = judged.asked.value;
  const LogLine* const used = PluginInUse(log, words);
  if (asked == "none") return JudgeNoPlugin(judged, used);
  const std::string could_not = std::string(words.kind) + "Could not find";
  if (const LogLine* const missing = log.Find(could_not, asked))
    return NotInEffect(judged, used == nullptr ? words.without : used->text,
                       "NCCL could not open a library of that name", missing);
  if (used != nullptr) {
    if (!judged.was_read()) return std::nullopt;
    return InEffect(judged, used->text.substr(words.kind.size()), *used);
  }
  const LogLine* const missing = log.Find(words.kind, words.missing_symbol);
  if (missing == nullptr) return std::nullopt;
  const LogLine* const tried = log.Find(words.kind, "Plugin name set by env to ");
  const bool other = tried != nullptr && tried->text.find(asked) == std::string::npos;
  return NotInEffect(
      judged, words.without,
      other ? "NCCL could not open a library of that name, and found no plugin in another that it tried"
            : "the library has no interface that this release knows",
      other ? tried : missing);
}

}  // namespace

std::optional<Receipt> CheckTunerPlugin(const Judged& judged) {
  return CheckPlugin(judged, kTuner);
}

std::optional<Receipt> CheckProfilerPlugin(const Judged& judged) {
  return CheckPlugin(judged, kProfiler);
}

// NCCL itself does not read this variable; NVIDIA's example tuner does.
std::optional<Receipt> CheckTunerConfigFile(const Judged& judged) {
  const LogLine* const whole = judged.WholeInit();
  const LogLine* const used = PluginInUse(judged.log(), kTuner);
  if (used != nullptr)
    return NotProvable(judged,
                       fmt::format("NCCL does not read it, a tuner plugin may; in use is {}", used->text),
                       "what the plugin logs with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING");
  if (whole == nullptr) return NotProvable(judged, "NCCL does not read it, a tuner plugin may");
  return NotInEffect(judged, "NCCL's own choice",
                     "NCCL does not read it: a tuner plugin would, and none is in use", whole);
}

}  // namespace dynamiccl
