// SPDX-License-Identifier: Apache-2.0
// The settings from this process's environment (docs/settings.md), read once at its first NCCL call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dynamiccl {

// Selects what this object does with calls: it passes them through, records them, chooses by one table, or
// chooses by tables that change while the job runs.
enum class Mode { kOff, kObserve, kFrozen, kAdaptive };
const char* Name(Mode mode);
// Returns true in the modes that choose by tables.
inline bool Chooses(Mode mode) {
  return mode == Mode::kFrozen || mode == Mode::kAdaptive;
}

// The calls that NCCL's profiler interface times.
enum class Timed : uint8_t { kNone, kWindows, kAll };

// Plain values that do not change after they are read, so any thread may use them.
struct JobSettings {
  Mode mode = Mode::kOff;
  std::string policy_path;
  std::string rules_path;
  std::vector<std::string> rules_in_turn;  // paths; an empty path stands for no rules
  uint32_t turn_steps = 3;
  std::string trace_path;         // with %h, %p, %r
  std::string decision_log_path;  // with %h, %p, %r
  std::string metrics_path;       // with %h, %p, %r
  std::string decisions_path;     // written by an earlier run, or to be written by this one
  bool reproducible = false;
  std::string tuner_plugin;  // NCCL_TUNER_PLUGIN as the user set it
  Timed times = Timed::kNone;
  std::string site_store_path;
  std::string values_path;  // file of live values
  int attest_timeout_ms = 2000;
  int rank = -1;        // rank of this process in its job, from the launcher; -1: unknown
  int world = 0;        // number of ranks in the job; 0: unknown
  int local_world = 0;  // ranks of the job on this node; 0: unknown
};

// Returns true if traces or metrics need data about single calls.
inline bool AccountsForCalls(const JobSettings& settings) {
  return !settings.trace_path.empty() || !settings.metrics_path.empty();
}
// Returns true if collectives are to be timed.
inline bool TimesCalls(const JobSettings& settings) {
  return settings.times != Timed::kNone && settings.mode != Mode::kOff;
}
// Returns true if guards watch times and change tables: in mode adaptive, unless the user switched timing
// off.
inline bool GuardsTables(const JobSettings& settings) {
  return settings.mode == Mode::kAdaptive && TimesCalls(settings);
}

// Reads the settings. Logs each wrong or unknown setting once; a wrong one counts as unset, a wrong mode as
// off.
JobSettings ReadJobSettings();

// Returns true if a plugin's name, as in NCCL_TUNER_PLUGIN or NCCL_PROFILER_PLUGIN, is empty or means this
// object.
bool NamesThisObject(const std::string& plugin);

// Returns the plugin that the user named in `variable`, which is NCCL_TUNER_PLUGIN or NCCL_PROFILER_PLUGIN,
// or empty if there is none. A process that started this one may have written this object's name there
// (PluginOffers); the user's value is then in the variable `KeptAs(variable)`.
std::string PluginOfUser(const std::string& variable);
std::string KeptAs(const std::string& variable);

// True only for NCCL 2.27.3. Its plugin variables need the file name of a library (lib*.so). It takes
// anything else, even STATIC_PLUGIN and paths, for a suffix: for a tuner it looks for
// libnccl-tuner-<value>.so.
bool OpensLibraryNamesOnly(int nccl_version);

// Returns the name of this object, which is already loaded, for NCCL's plugin variables. NCCL up to 2.21 has
// no name for an object in the process and opens a file; the dynamic linker recognises that it is the same
// one. Pass 0 if the version is unknown.
std::string OwnPluginName(int nccl_version);

// Returns the NCCL_* variables that steer choices as a text: "none", or "NAME=value ..." cut to a line, and a
// digest. Two texts are equal exactly if the variables are. The NCCL_TUNER_PLUGIN that DynamICCL sets is left
// out; the user's is included.
std::string PinnedByUser(const JobSettings& settings);
// True when the user fixed algorithms or protocols.
bool PairsArePinned();
// True when the user fixed the number of channels, so that NCCL alone decides it.
bool ChannelsArePinned();

}  // namespace dynamiccl
