// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/plugin_host/tuner_plugin.h"

#include <dlfcn.h>
#include <strings.h>

#include <cstdlib>
#include <mutex>

#include "src/hostccl/debug_log.h"

namespace dynamiccl::hostccl {
namespace {

constexpr unsigned long kSubsystems = NCCL_SUBSYS_INIT | NCCL_SUBSYS_TUNING;

// Newest first; the first hit wins.
constexpr bool (*kAdapters[])(const DynamicLibrary&, TunerInterface&) = {FindTunerV6, FindTunerV5};

bool IsStatic(const std::string& name) {
  return ::strncasecmp(name.c_str(), "STATIC_PLUGIN", name.size()) == 0;
}

bool IsFileName(const std::string& name) {
  return name.rfind("lib", 0) == 0 && name.size() > 3 && name.rfind(".so") == name.size() - 3;
}

// Owns the library together with the functions found in it: closed after the last copy of the pointer is
// gone.
struct LoadedTuner {
  DynamicLibrary library;
  TunerInterface interface;
};

std::shared_ptr<const TunerInterface> TryLoad(const std::string& name) {
  auto library = name.empty() ? DynamicLibrary::Global() : DynamicLibrary::Open(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    Info(kSubsystems, "TUNER/Plugin: Could not find: {}. {}", name, library.error().message);
    return nullptr;
  }
  auto loaded = std::make_shared<LoadedTuner>(LoadedTuner{std::move(*library), {}});
  for (const auto adapter : kAdapters) {
    if (!adapter(loaded->library, loaded->interface)) continue;
    const TunerInterface& found = loaded->interface;
    Info(kSubsystems, "TUNER/Plugin: Using {} (v{})", found.functions.name, found.version);
    return {loaded, &loaded->interface};
  }
  Info(kSubsystems, "TUNER/Plugin: no ncclTunerPlugin_v5 or _v6 in {}", name.empty() ? "the process" : name);
  return nullptr;
}

}  // namespace

std::vector<std::string> TunerCandidates(const char* variable) {
  if (variable == nullptr || *variable == '\0') return {"libnccl-tuner.so"};
  const std::string name = variable;
  if (::strcasecmp(variable, "none") == 0) return {};
  if (IsStatic(name)) return {""};
  if (name.find('/') != std::string::npos || IsFileName(name)) return {name};
  return {name, "libnccl-tuner-" + name + ".so"};
}

std::shared_ptr<const TunerInterface> AcquireTuner() {
  static std::mutex mutex;
  static std::weak_ptr<const TunerInterface> current;
  static bool failed = false;
  const std::lock_guard lock(mutex);
  if (auto shared = current.lock()) return shared;
  if (failed) return nullptr;
  const char* variable = std::getenv("NCCL_TUNER_PLUGIN");
  if (variable != nullptr) Info(NCCL_SUBSYS_ENV, "NCCL_TUNER_PLUGIN set by environment to {}", variable);
  for (const std::string& name : TunerCandidates(variable)) {
    if (auto loaded = TryLoad(name)) {
      current = loaded;
      return loaded;
    }
  }
  failed = true;
  return nullptr;
}

}  // namespace dynamiccl::hostccl
