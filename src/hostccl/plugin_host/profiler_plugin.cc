// SPDX-License-Identifier: Apache-2.0
// Loads the profiler plugin, once per process.
#include "src/hostccl/plugin_host/profiler_plugin.h"

#include <mutex>
#include <utility>

#include "src/hostccl/debug_log.h"

namespace dynamiccl::hostccl {
namespace {

// The adapters, newest version first. The first whose version the library exports is used.
constexpr bool (*kAdapters[])(const DynamicLibrary&, ProfilerInterface&) = {
    FindProfilerV7, FindProfilerV6, FindProfilerV5, FindProfilerV4,
    FindProfilerV3, FindProfilerV2, FindProfilerV1};

// Owns the library together with the functions found in it. The library is closed after the last pointer to
// this object is gone.
struct LoadedProfiler {
  DynamicLibrary library;
  ProfilerInterface interface;
};

// Opens the library and takes the newest version that it exports. Without a library or version it logs a line
// and returns null.
std::shared_ptr<const ProfilerInterface> Load() {
  auto library = OpenPluginLibrary(kProfilerPlugin);
  if (!library) return nullptr;
  auto loaded = std::make_shared<LoadedProfiler>(LoadedProfiler{std::move(*library), {}});
  for (const auto adapter : kAdapters) {
    if (!adapter(loaded->library, loaded->interface)) continue;
    const ProfilerInterface& found = loaded->interface;
    Info(NCCL_SUBSYS_INIT, "PROFILER/Plugin: Loaded {} (v{})", found.functions.name, found.version);
    return {loaded, &loaded->interface};
  }
  Info(NCCL_SUBSYS_INIT, "PROFILER/Plugin: no ncclProfiler_v1 to _v7 in the plugin");
  return nullptr;
}

}  // namespace

std::shared_ptr<const ProfilerInterface> AcquireProfiler() {
  static std::mutex mutex;
  static std::weak_ptr<const ProfilerInterface> current;
  static bool failed = false;
  const std::lock_guard lock(mutex);
  if (auto shared = current.lock()) return shared;
  if (failed) return nullptr;
  auto loaded = Load();
  failed = loaded == nullptr;
  current = loaded;
  return loaded;
}

}  // namespace dynamiccl::hostccl
