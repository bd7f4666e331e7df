// SPDX-License-Identifier: Apache-2.0
// A profiler plugin that passes everything on to the libdynamiccl.so at TEST_DYNAMICCL, but replaces the
// durations of kernels by those of a model. The object's times then follow from the call and its config
// alone, on a noisy machine too. A kernel takes 200 us plus a quarter of a nanosecond per byte, times the
// factors of
//   MODEL_TIMES   "Tree/Simple/2 0.8,Ring/LL 4": for configs that begin like this; 1 for all others
//   MODEL_SLOWER  "<file> <factor>": for all kernels that begin while the file exists
// If it is also preloaded, it sets the times of hostccl's events, by which the object times whole steps. The
// time of an event is the sum over all earlier collectives, each changed at random by up to 5 %.
// A release without a profiler loads it as a tuner of version 3. It then passes NCCL's questions on to the
// object, and advances the same clock by the time of the config that the object chose.
// MODEL_JUMPS=n makes this clock jump at every n-th event, by turns 10 s forwards and 10 s back. With
// MODEL_SLEEP=n, the thread that issues a timed collective sleeps n times its duration. Steps are then long
// enough for new versions of the table to be agreed on.
#include <dlfcn.h>
#include <strings.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <string>

#include "src/nccl_abi/host_stream.h"
#include "src/nccl_abi/profiler_v7.h"
#include "src/nccl_abi/tuner_v3.h"

namespace {

constexpr uint64_t kBeginNs = 1'000'000;
constexpr double kLatencyNs = 200'000;
constexpr double kByteNs = 0.25;
constexpr uint64_t kJumpNs = 10'000'000'000;
constexpr size_t kElementBytes = 4;  // the job's calls are of float32

// Names in the order of NCCL's enum.
constexpr const char* kAlgorithms[] = {"Tree",     "Ring", "CollNetDirect", "CollNetChain", "NVLS",
                                       "NVLSTree", "PAT"};
constexpr const char* kProtocols[] = {"LL", "LL128", "Simple"};

const ncclProfiler_v7_t* g_object = nullptr;
const ncclTuner_v3_t* g_tuner = nullptr;  // the object's tuner
std::mutex g_mutex;                       // guards all variables below
std::map<const void*, uint64_t>
    g_duration_ns;                           // by a collective's handle, of which the object has some hundred
std::map<const void*, uint64_t> g_end_ns;    // by a running channel's handle
uint64_t g_clock_ns = kBeginNs;              // sum of the durations of all collectives so far
std::minstd_rand g_noise;                    // begins with the same seed in each run
uint64_t g_events = 0;                       // number of events recorded so far
std::map<const void*, uint64_t> g_event_ns;  // time of the last recording, by hostccl's handle

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

double FactorOf(const std::string& config) {
  std::istringstream factors(Variable("MODEL_TIMES"));
  for (std::string factor; std::getline(factors, factor, ',');) {
    const size_t space = factor.find(' ');
    const std::string whole_names = factor.substr(0, space) + "/";
    if (::strncasecmp(whole_names.c_str(), config.c_str(), whole_names.size()) == 0)
      return std::atof(factor.c_str() + space);
  }
  return 1;
}

double FactorOfNow() {
  std::istringstream words(Variable("MODEL_SLOWER"));
  std::string file;
  double factor = 1;
  words >> file >> factor;
  return !file.empty() && ::access(file.c_str(), F_OK) == 0 ? factor : 1;
}

uint64_t DurationNs(const std::string& algorithm, const std::string& protocol, int channels, size_t bytes) {
  const std::string config = algorithm + "/" + protocol + "/" + std::to_string(channels) + "/";
  const double ns = kLatencyNs + kByteNs * static_cast<double>(bytes);
  return static_cast<uint64_t>(ns * FactorOf(config) * FactorOfNow());
}

// Advances the clock of events by the collective's duration, and sleeps MODEL_SLEEP times as long on this
// thread.
void LetPass(uint64_t duration_ns) {
  {
    const std::lock_guard lock(g_mutex);
    const double noise = std::uniform_real_distribution<double>(0.95, 1.05)(g_noise);
    g_clock_ns += static_cast<uint64_t>(static_cast<double>(duration_ns) * noise);
  }
  const int times = std::atoi(Variable("MODEL_SLEEP").c_str());
  ::usleep(static_cast<useconds_t>(duration_ns * static_cast<uint64_t>(times) / 1000));
}

ncclResult_t StartChannel(void* context, void** handle, ncclProfilerEventDescr_v7_t event) {
  uint64_t end_ns = 0;
  {
    const std::lock_guard lock(g_mutex);
    const auto collective = g_duration_ns.find(event.parentObj);
    if (collective != g_duration_ns.end()) end_ns = kBeginNs + collective->second;
  }
  if (end_ns != 0) event.kernelCh.pTimer = kBeginNs;
  const ncclResult_t result = g_object->startEvent(context, handle, &event);
  const std::lock_guard lock(g_mutex);
  if (end_ns != 0 && *handle != nullptr) g_end_ns[*handle] = end_ns;
  return result;
}

ncclResult_t StartEvent(void* context, void** handle, ncclProfilerEventDescr_v7_t* event) {
  if (event->type == ncclProfileKernelCh) return StartChannel(context, handle, *event);
  const ncclResult_t result = g_object->startEvent(context, handle, event);
  if (event->type != ncclProfileColl || *handle == nullptr) return result;
  const auto& coll = event->coll;
  const uint64_t duration_ns = DurationNs(coll.algo, coll.proto, coll.nChannels, coll.count * kElementBytes);
  {
    const std::lock_guard lock(g_mutex);
    g_duration_ns[*handle] = duration_ns;
  }
  LetPass(duration_ns);
  return result;
}

ncclResult_t GetCollInfo(void* context, ncclFunc_t collective, size_t bytes, int n_pipe_ops, float** table,
                         int n_algorithms, int n_protocols, int* channels) {
  *channels = 0;
  const ncclResult_t result = g_tuner->getCollInfo(context, collective, bytes, n_pipe_ops, table,
                                                   n_algorithms, n_protocols, channels);
  // NCCL's interface declares float** but passes an array of costs. A negative cost marks a config that is
  // not possible.
  const auto* const costs = reinterpret_cast<const float*>(table);
  int cheapest = -1;
  for (int cell = 0; cell < n_algorithms * n_protocols; ++cell) {
    if (costs[cell] >= 0 && (cheapest < 0 || costs[cell] < costs[cheapest])) cheapest = cell;
  }
  if (cheapest >= 0)
    LetPass(DurationNs(kAlgorithms[cheapest / n_protocols], kProtocols[cheapest % n_protocols], *channels,
                       bytes));
  return result;
}

ncclResult_t StopEvent(void* handle) {
  {
    const std::lock_guard lock(g_mutex);
    g_end_ns.erase(handle);
  }
  return g_object->stopEvent(handle);
}

ncclResult_t RecordEventState(void* handle, ncclProfilerEventState_t state,
                              ncclProfilerEventStateArgs_v7_t* arguments) {
  if (state != ncclProfilerKernelChStop || arguments == nullptr)
    return g_object->recordEventState(handle, state, arguments);
  ncclProfilerEventStateArgs_v7_t modelled = *arguments;
  {
    const std::lock_guard lock(g_mutex);
    const auto channel = g_end_ns.find(handle);
    if (channel != g_end_ns.end()) modelled.kernelCh.pTimer = channel->second;
  }
  return g_object->recordEventState(handle, state, &modelled);
}

template <class Function>
Function Hostccls(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) ncclResult_t hostcclEventRecord(hostcclEvent_t event,
                                                                                  cudaStream_t stream) {
  static const auto own = Hostccls<decltype(&hostcclEventRecord)>("hostcclEventRecord");
  {
    const std::lock_guard lock(g_mutex);
    const auto between = static_cast<uint64_t>(std::atoi(Variable("MODEL_JUMPS").c_str()));
    const bool is_ahead = between > 0 && ++g_events / between % 2 == 1;
    g_event_ns[event] = g_clock_ns + (is_ahead ? kJumpNs : 0);
  }
  return own(event, stream);
}

extern "C" __attribute__((visibility("default"))) ncclResult_t hostcclEventTime(hostcclEvent_t event,
                                                                                int64_t* nanoseconds) {
  static const auto own = Hostccls<decltype(&hostcclEventTime)>("hostcclEventTime");
  const ncclResult_t result = own(event, nanoseconds);
  const std::lock_guard lock(g_mutex);
  if (result == ncclSuccess) *nanoseconds = static_cast<int64_t>(g_event_ns[event]);
  return result;
}

extern "C" __attribute__((visibility("default"))) ncclProfiler_v7_t ncclProfiler_v7;
ncclProfiler_v7_t ncclProfiler_v7;
extern "C" __attribute__((visibility("default"))) ncclTuner_v3_t ncclTunerPlugin_v3;
ncclTuner_v3_t ncclTunerPlugin_v3;

__attribute__((constructor)) static void Fill() {
  void* const object = ::dlopen(Variable("TEST_DYNAMICCL").c_str(), RTLD_NOW | RTLD_LOCAL);
  g_object =
      object == nullptr ? nullptr : static_cast<const ncclProfiler_v7_t*>(::dlsym(object, "ncclProfiler_v7"));
  g_tuner =
      object == nullptr ? nullptr : static_cast<const ncclTuner_v3_t*>(::dlsym(object, "ncclTunerPlugin_v3"));
  if (g_object == nullptr || g_tuner == nullptr) {
    std::fprintf(stderr, "modelled_times: no ncclProfiler_v7 or no ncclTunerPlugin_v3 in TEST_DYNAMICCL\n");
    std::abort();
  }
  ncclTunerPlugin_v3 = {g_tuner->name, g_tuner->init, GetCollInfo, g_tuner->destroy};
  ncclProfiler_v7 = {g_object->name, g_object->init,   StartEvent,
                     StopEvent,      RecordEventState, g_object->finalize};
}
