// SPDX-License-Identifier: Apache-2.0
// A tuner (version 5) and a profiler (version 5) in one object, for experiments. They count NCCL's calls, and
// environment variables set their answers. Releases 2.28 to 2.32 load these versions.
//
//   PROBE_FORCE=a,p,c    cost 0 for algorithm a and protocol p if NCCL allows them, and c channels
//   PROBE_IGNORE=a,p     cost -1 for algorithm a and protocol p
//   PROBE_MASK=m         events that the profiler asks for (2: collectives, 64: kernels of each channel)
//   PROBE_TABLE=FILE     writes every table that NCCL passes to the tuner into FILE-PID.csv: collective,
//                        bytes, pipelined operations, registered buffers, algorithms, protocols, costs
//   PROBE_REPORT=FILE    writes the counts as one JSON line into FILE when the process ends
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <mutex>
#include <string>

namespace {

using Result = int;  // ncclResult_t
constexpr Result kSuccess = 0;
using Logger = void (*)(int, unsigned long, const char*, int, const char*, ...);

enum Event : uint64_t { kCollective = 2, kKernelChannel = 64 };
constexpr int kKernelChannelStop = 22;

std::atomic<long> tuner_inits{0}, tuner_calls{0}, profiler_inits{0}, collective_events{0}, kernel_events{0},
    kernel_stops{0};

// Reads "a,b,c" from a variable. Returns how many numbers it has.
int Numbers(const char* variable, std::array<int, 3>* out) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::sscanf(text, "%d,%d,%d", &(*out)[0], &(*out)[1], &(*out)[2]);
}

Result TunerInit(void** context, uint64_t, size_t, size_t, Logger, void*, void*) {
  ++tuner_inits;
  *context = nullptr;
  return kSuccess;
}

// Appends a table to this process's file. Ranks that are threads take turns.
void WriteTable(std::initializer_list<long> head, const float* costs, int count) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  static FILE* const file = [] {
    const char* path = std::getenv("PROBE_TABLE");
    return path == nullptr
               ? nullptr
               : std::fopen((std::string(path) + "-" + std::to_string(getpid()) + ".csv").c_str(), "w");
  }();
  if (file == nullptr) return;
  for (const long value : head) std::fprintf(file, "%ld,", value);
  for (int entry = 0; entry < count; ++entry)
    std::fprintf(file, "%.9g%s", static_cast<double>(costs[entry]), entry + 1 < count ? "," : "\n");
  std::fflush(file);
}

Result GetCollInfo(void*, int collective, size_t bytes, int pipelined, float** table, int algorithms,
                   int protocols, int registered, int* channels) {
  ++tuner_calls;
  // NCCL passes a block of floats, although the parameter is declared as float**.
  auto* costs = reinterpret_cast<float*>(table);
  WriteTable({collective, static_cast<long>(bytes), pipelined, registered, algorithms, protocols}, costs,
             algorithms * protocols);
  const auto allowed = [&](const std::array<int, 3>& at) {
    return at[0] >= 0 && at[0] < algorithms && at[1] >= 0 && at[1] < protocols &&
           costs[at[0] * protocols + at[1]] >= 0;
  };
  std::array<int, 3> at{};
  if (Numbers("PROBE_FORCE", &at) == 3 && allowed(at)) {
    costs[at[0] * protocols + at[1]] = 0;
    *channels = at[2];
  }
  if (Numbers("PROBE_IGNORE", &at) == 2 && allowed(at)) costs[at[0] * protocols + at[1]] = -1;
  return kSuccess;
}

Result Finalize(void*) {
  return kSuccess;
}

Result ProfilerInit(void** context, uint64_t, int* mask, const char*, int, int, int, Logger) {
  ++profiler_inits;
  const char* wanted = std::getenv("PROBE_MASK");
  *mask = wanted == nullptr ? 0 : std::atoi(wanted);
  *context = mask;
  return kSuccess;
}

// The head of ncclProfilerEventDescr_v5_t, and after it the fields of a collective. Other types of events
// have other fields there.
struct EventHead {
  uint64_t type;
  void* parent;
  int rank;
  uint64_t sequence;
  const char* function;
  const void* send;
  void* receive;
  size_t count;
  int root;
  const char* data_type;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};
static_assert(offsetof(EventHead, function) == 32 && offsetof(EventHead, channels) == 80 &&
                  offsetof(EventHead, protocol) == 96,
              "ncclProfilerEventDescr_v5_t (profiler_v5.h of NCCL)");

// The last collective that the profiler saw, such as "AllReduce RING SIMPLE 2".
char last_collective[128] = "";
std::mutex last_collective_mutex;

void Remember(const EventHead& event) {
  if (event.function == nullptr || event.algorithm == nullptr || event.protocol == nullptr) return;
  const std::lock_guard<std::mutex> lock(last_collective_mutex);
  std::snprintf(last_collective, sizeof last_collective, "%s %s %s %d", event.function, event.algorithm,
                event.protocol, int{event.channels});
}

// A handle is the event's type as a pointer, which is never null, so nothing is allocated or freed.
Result StartEvent(void*, void** handle, const EventHead* event) {
  if (event->type == kCollective) {
    ++collective_events;
    Remember(*event);
  }
  if (event->type == kKernelChannel) ++kernel_events;
  *handle = reinterpret_cast<void*>(static_cast<uintptr_t>(event->type));
  return kSuccess;
}

Result StopEvent(void*) {
  return kSuccess;
}

Result RecordEventState(void*, int state, void*) {
  if (state == kKernelChannelStop) ++kernel_stops;
  return kSuccess;
}

__attribute__((destructor)) void Report() {
  const char* path = std::getenv("PROBE_REPORT");
  FILE* file = path == nullptr ? nullptr : std::fopen(path, "w");
  if (file == nullptr) return;
  std::fprintf(file,
               "{\"tuner_inits\":%ld,\"tuner_calls\":%ld,\"profiler_inits\":%ld,\"collective_events\":%ld,"
               "\"kernel_events\":%ld,\"kernel_stops\":%ld,\"profiled\":\"%s\"}\n",
               tuner_inits.load(), tuner_calls.load(), profiler_inits.load(), collective_events.load(),
               kernel_events.load(), kernel_stops.load(), last_collective);
  std::fclose(file);
}

struct Tuner {
  const char* name;
  decltype(&TunerInit) init;
  decltype(&GetCollInfo) get_coll_info;
  decltype(&Finalize) finalize;
};

struct Profiler {
  const char* name;
  decltype(&ProfilerInit) init;
  decltype(&StartEvent) start_event;
  decltype(&StopEvent) stop_event;
  decltype(&RecordEventState) record_event_state;
  decltype(&Finalize) finalize;
};

}  // namespace

extern "C" __attribute__((visibility("default")))
const Tuner ncclTunerPlugin_v5 = {"Probe", TunerInit, GetCollInfo, Finalize};
extern "C" __attribute__((visibility("default")))
const Profiler ncclProfiler_v5 = {"Probe", ProfilerInit, StartEvent, StopEvent, RecordEventState, Finalize};
