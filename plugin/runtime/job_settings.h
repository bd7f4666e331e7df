// SPDX-License-Identifier: Apache-2.0
// What the environment of this process asks of us (docs/settings.md), read once by its first NCCL call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dynamiccl {

// What this object does with calls: pass them through, record them, choose by one table, or by tables that
// change while the job runs.
enum class Mode { kOff, kObserve, kFrozen, kAdaptive };
const char* Name(Mode mode);
// True where tables are used: by one table for the run, or by tables that change while it runs.
inline bool Chooses(Mode mode) {
  return mode == Mode::kFrozen || mode == Mode::kAdaptive;
}

// Which calls NCCL's profiler interface times.
enum class Timed : uint8_t { kNone, kWindows, kAll };

// Plain values: nothing changes them once they are read, so any thread may use them.
struct JobSettings {
  Mode mode = Mode::kOff;
  std::string policy_path;
  std::string rules_path;
  std::vector<std::string> rules_in_turn;  // paths; an empty one stands for no rules
  uint32_t turn_steps = 3;
  std::string trace_path;         // with %h, %p, %r
  std::string decision_log_path;  // with %h, %p, %r
  std::string metrics_path;       // with %h, %p, %r
  std::string decisions_path;     // of an earlier run, or to be written
  bool reproducible = false;
  std::string tuner_plugin;  // NCCL_TUNER_PLUGIN as the user set it
  Timed times = Timed::kNone;
  std::string site_store_path;
  int attest_timeout_ms = 2000;
  int rank = -1;        // of this process in its job, from the launcher; -1 unknown
  int world = 0;        // 0 unknown
  int local_world = 0;  // ranks of the job on this node; 0 unknown
};

// Whether traces or metrics hold single calls.
inline bool AccountsForCalls(const JobSettings& settings) {
  return !settings.trace_path.empty() || !settings.metrics_path.empty();
}
// Whether collectives are to be timed.
inline bool TimesCalls(const JobSettings& settings) {
  return settings.times != Timed::kNone && settings.mode != Mode::kOff;
}
// Whether tables are watched by times and changed: mode adaptive, unless the user switched timing off.
inline bool GuardsTables(const JobSettings& settings) {
  return settings.mode == Mode::kAdaptive && TimesCalls(settings);
}

// Logs each setting that is wrong or unknown once; a wrong one counts as unset, a wrong mode as off.
JobSettings ReadJobSettings();

// Whether a plugin's name, as NCCL_TUNER_PLUGIN or NCCL_PROFILER_PLUGIN has it, means this object or nothing
// else.
bool NamesThisObject(const std::string& plugin);

// True for NCCL 2.27.3 alone. Its plugin variables want the file name of a library (lib*.so). All else,
// STATIC_PLUGIN and paths too, it reads as a suffix: for a tuner it looks for libnccl-tuner-<value>.so.
bool OpensLibraryNamesOnly(int nccl_version);

// What NCCL's plugin variables call this object, which is in the process already. Up to 2.21 NCCL knows no
// name for that and opens a file; the dynamic linker sees that it is the same one. 0: version unknown.
std::string OwnPluginName(int nccl_version);

// The NCCL_* variables that steer choices, as text that is equal exactly when they are: "none", or a digest
// and, cut to a line, "NAME=value ...". Our own NCCL_TUNER_PLUGIN is not among them; the user's is.
std::string PinnedByUser(const JobSettings& settings);
// True when the user fixed algorithms or protocols.
bool PairsArePinned();
// True when the user fixed the number of channels: it is then NCCL's alone.
bool ChannelsArePinned();

}  // namespace dynamiccl
