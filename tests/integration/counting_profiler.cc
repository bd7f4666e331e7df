// SPDX-License-Identifier: Apache-2.0
// A profiler plugin of version PROFILER_VERSION, as a user might have. It asks for the kinds of events in
// TEST_MASK, keeps a handle for each event and checks what comes back. At the end it writes into TEST_COUNTS
// how many events of each kind were started, stopped and given a state.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

#include PROFILER_HEADER

#define GLUE_INNER(a, b, c) a##b##c
#define GLUE(a, b, c) GLUE_INNER(a, b, c)

namespace {

using Plugin = GLUE(ncclProfiler_v, PROFILER_VERSION, _t);
using Descriptor = GLUE(ncclProfilerEventDescr_v, PROFILER_VERSION, _t);
using StateArguments = GLUE(ncclProfilerEventStateArgs_v, PROFILER_VERSION, _t);

struct Event {
  uint64_t type;
};
struct Counts {
  int started = 0, stopped = 0, states = 0, with_parent = 0;
};

std::mutex g_mutex;
std::map<uint64_t, Counts> g_counts;
std::set<const void*> g_known;  // events are kept until the end
int g_strangers = 0;

ncclResult_t Start(void*, void** handle, Descriptor* descriptor) {
  const std::lock_guard lock(g_mutex);
  auto* event = new Event{descriptor->type};
  Counts& counts = g_counts[event->type];
  ++counts.started;
  if (descriptor->parentObj != nullptr) {
    ++counts.with_parent;
    if (!g_known.contains(descriptor->parentObj)) ++g_strangers;
  }
  g_known.insert(event);
  *handle = event;
  return ncclSuccess;
}

ncclResult_t Stop(void* handle) {
  const std::lock_guard lock(g_mutex);
  if (!g_known.contains(handle)) return ++g_strangers, ncclSuccess;
  ++g_counts[static_cast<Event*>(handle)->type].stopped;
  return ncclSuccess;
}

ncclResult_t Record(void* handle, ncclProfilerEventState_t, StateArguments*) {
  const std::lock_guard lock(g_mutex);
  if (!g_known.contains(handle)) return ++g_strangers, ncclSuccess;
  ++g_counts[static_cast<Event*>(handle)->type].states;
  return ncclSuccess;
}

ncclResult_t Finalize(void*) {
  const std::lock_guard lock(g_mutex);
  FILE* file = std::fopen(std::getenv("TEST_COUNTS"), "w");
  if (file == nullptr) return ncclSuccess;
  for (const auto& [type, counts] : g_counts) {
    std::fprintf(file, "%lu started %d stopped %d states %d with parent %d\n",
                 static_cast<unsigned long>(type), counts.started, counts.stopped, counts.states,
                 counts.with_parent);
  }
  std::fprintf(file, "strangers %d\n", g_strangers);
  std::fclose(file);
  return ncclSuccess;
}

ncclResult_t Begin(void** context, int* mask) {
  static int one = 1;
  *context = &one;
  *mask = std::atoi(std::getenv("TEST_MASK"));
  return ncclSuccess;
}
[[maybe_unused]] ncclResult_t Init(void** context, int* mask) {
  return Begin(context, mask);
}
[[maybe_unused]] ncclResult_t Init(void** context, int* mask, const char*, uint64_t, int, int, int,
                                   ncclDebugLogger_t) {
  return Begin(context, mask);
}
[[maybe_unused]] ncclResult_t Init(void** context, uint64_t, int* mask, const char*, int, int, int,
                                   ncclDebugLogger_t) {
  return Begin(context, mask);
}

}  // namespace

#define SYMBOL GLUE(ncclProfiler_v, PROFILER_VERSION, )
extern "C" __attribute__((visibility("default"))) const Plugin SYMBOL;
const Plugin SYMBOL = {"counting", Init, Start, Stop, Record, Finalize};
