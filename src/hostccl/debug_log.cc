// SPDX-License-Identifier: Apache-2.0
// The state of the log, and the parsing of its environment variables. See debug_log.h.
#include "src/hostccl/debug_log.h"

#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "src/base/settings.h"

namespace dynamiccl::hostccl {
namespace {

struct SubsystemName {
  const char* name;
  unsigned long bit;
};
// NCCL's bits (src/include/nccl_common.h).
constexpr SubsystemName kSubsystems[] = {{"INIT", 0x1},
                                         {"COLL", 0x2},
                                         {"P2P", 0x4},
                                         {"SHM", 0x8},
                                         {"NET", 0x10},
                                         {"GRAPH", 0x20},
                                         {"TUNING", NCCL_SUBSYS_TUNING},
                                         {"ENV", 0x80},
                                         {"ALLOC", 0x100},
                                         {"PROXY", 0x400},
                                         {"NVLS", 0x800},
                                         {"BOOTSTRAP", 0x1000},
                                         {"REG", 0x2000},
                                         {"CALL", 0x200},
                                         {"PROFILE", 0x4000},
                                         {"RAS", 0x8000},
                                         {"ALL", ~0UL}};
// The subsystems that NCCL logs by default: INIT, BOOTSTRAP and ENV.
constexpr unsigned long kDefaultMask = 0x1 | 0x1000 | 0x80;

// The state of the process's log. The mutex guards everything except the two atomic members.
struct DebugState {
  std::atomic<ncclDebugLogLevel> level{NCCL_LOG_NONE};
  std::atomic<unsigned long> mask{kDefaultMask};
  FILE* file = stdout;
  std::string host;
  std::mutex mutex;
  std::string last_warning;
};

thread_local int t_device = 0;

ncclDebugLogLevel LevelFromText(const char* text) {
  struct Row {
    const char* name;
    ncclDebugLogLevel level;
  };
  constexpr Row kLevels[] = {{"VERSION", NCCL_LOG_VERSION},
                             {"WARN", NCCL_LOG_WARN},
                             {"INFO", NCCL_LOG_INFO},
                             {"ABORT", NCCL_LOG_ABORT},
                             {"TRACE", NCCL_LOG_TRACE}};
  for (const Row& row : kLevels) {
    if (::strcasecmp(text, row.name) == 0) return row.level;
  }
  return NCCL_LOG_NONE;
}

unsigned long BitOf(const std::string& name) {
  for (const SubsystemName& row : kSubsystems) {
    if (::strcasecmp(name.c_str(), row.name) == 0) return row.bit;
  }
  return 0;
}

// Parses a list of subsystems such as "INIT,COLL" or "^NET". As in NCCL, a leading ^ means all subsystems
// except those named.
unsigned long MaskFromText(std::string text) {
  const bool invert = !text.empty() && text[0] == '^';
  if (invert) text.erase(0, 1);
  unsigned long mask = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    mask |= BitOf(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return invert ? ~mask : mask;
}

// Returns the host name up to its first dot, as in NCCL's log lines.
std::string ShortHostName() {
  const std::string name = HostName();
  return name.empty() ? "unknown" : name.substr(0, name.find('.'));
}

// Reads the variables. As in NCCL, NCCL_DEBUG_FILE is used only if the level is above VERSION.
void Configure(DebugState& state) {
  state.host = ShortHostName();
  const char* const level = std::getenv("NCCL_DEBUG");
  const char* const mask = std::getenv("NCCL_DEBUG_SUBSYS");
  state.level = level == nullptr ? NCCL_LOG_NONE : LevelFromText(level);
  state.mask = mask == nullptr ? kDefaultMask : MaskFromText(mask);
  const char* path = std::getenv("NCCL_DEBUG_FILE");
  if (path == nullptr || state.level <= NCCL_LOG_VERSION) return;
  // The file is never closed, because any thread may write lines until the process ends.
  FILE* file = std::fopen(ExpandPath(path, 0).c_str(), "w");
  if (file != nullptr) state.file = file;
}

DebugState& State() {
  // The state is never destroyed, because plugins may log from their own destructors.
  static DebugState* state = [] {
    auto* fresh = new DebugState;
    Configure(*fresh);
    return fresh;
  }();
  return *state;
}

const char* LevelName(ncclDebugLogLevel level) {
  switch (level) {
    case NCCL_LOG_WARN:
      return "WARN";
    case NCCL_LOG_TRACE:
      return "TRACE";
    default:
      return "INFO";
  }
}

}  // namespace

void ReloadDebugSettings() {
  DebugState& state = State();
  const std::lock_guard lock(state.mutex);
  Configure(state);
}

void SetLogDevice(int device) {
  t_device = device;
}

// A WARN is written whatever its subsystems.
bool DebugEnabled(ncclDebugLogLevel level, unsigned long subsystems) {
  const DebugState& state = State();
  if (level == NCCL_LOG_WARN) return state.level >= NCCL_LOG_WARN;
  return state.level >= level && (state.mask & subsystems) != 0;
}

void DebugLine(ncclDebugLogLevel level, unsigned long subsystems, std::string_view text) {
  DebugState& state = State();
  const bool enabled = DebugEnabled(level, subsystems);
  const std::lock_guard lock(state.mutex);
  if (level == NCCL_LOG_WARN) state.last_warning = text;
  if (!enabled) return;
  const std::string line = fmt::format("{}:{}:{} [{}] NCCL {} {}\n", state.host, ::getpid(),
                                       ::syscall(SYS_gettid), t_device, LevelName(level), text);
  std::fwrite(line.data(), 1, line.size(), state.file);
  std::fflush(state.file);
}

std::string LastWarning() {
  DebugState& state = State();
  const std::lock_guard lock(state.mutex);
  return state.last_warning;
}

void PluginLogger(ncclDebugLogLevel level, unsigned long flags, const char* file, int line,
                  const char* format, ...) {
  (void)file;  // NCCL prints the place of a WARN only in the text that its own macro makes
  (void)line;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  DebugLine(level, flags, text);
}

}  // namespace dynamiccl::hostccl
