// SPDX-License-Identifier: Apache-2.0
// Loads the tuner plugin, once per process.
#include "src/hostccl/plugin_host/tuner_plugin.h"

#include <mutex>
#include <utility>

#include "src/hostccl/debug_log.h"

namespace dynamiccl::hostccl {
namespace {

// Owns the library together with the functions found in it. The library is closed after the last pointer to
// this object is gone.
struct LoadedTuner {
  DynamicLibrary library;
  TunerInterface interface;
};

// Opens the library and takes the newest version that it exports, up to `newest`. Without a library or
// version it logs a line and returns null.
std::shared_ptr<const TunerInterface> Load(int newest) {
  auto library = OpenPluginLibrary(kTunerPlugin);
  if (!library) return nullptr;
  auto loaded = std::make_shared<LoadedTuner>(LoadedTuner{std::move(*library), {}});
  if (FindTuner(loaded->library, loaded->interface, newest)) {
    const TunerInterface& found = loaded->interface;
    Info(kTunerPlugin.log_subsystems, "TUNER/Plugin: Using {} (v{})", found.functions.name, found.version);
    return {loaded, &loaded->interface};
  }
  Info(kTunerPlugin.log_subsystems, "TUNER/Plugin: no ncclTunerPlugin_v2 to _v{} in the plugin", newest);
  return nullptr;
}

}  // namespace

std::shared_ptr<const TunerInterface> AcquireTuner(int newest) {
  static std::mutex mutex;
  static std::weak_ptr<const TunerInterface> current;
  static bool failed = false;
  const std::lock_guard lock(mutex);
  if (auto shared = current.lock()) return shared;
  if (failed) return nullptr;
  auto loaded = Load(newest);
  failed = loaded == nullptr;
  current = loaded;
  return loaded;
}

}  // namespace dynamiccl::hostccl
