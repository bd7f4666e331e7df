// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/runtime_instance.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "plugin/border/no_throw.h"
#include "plugin/runtime/process_runtime.h"

namespace dynamiccl {
namespace {

enum class State : int { kNew, kReady, kForked };

// g_state is written last of the three, so a thread that sees kReady also sees the runtime.
std::atomic<State> g_state{State::kNew};
std::atomic<ProcessRuntime*> g_runtime{nullptr};
std::atomic<ProcessRuntime*> g_watching{nullptr};
std::once_flag g_once;

// Runs in the child, before its fork returns.
void PassThroughInChild() {
  if (g_state.load() != State::kReady) return;
  g_state.store(State::kForked);
  g_runtime.store(nullptr);
  g_watching.store(nullptr);
}

// Runs once. It registers the fork handler first, so that no child can inherit a runtime without that
// handler.
void Create() {
  ::pthread_atfork(nullptr, nullptr, PassThroughInChild);
  auto* runtime = new ProcessRuntime();
  g_runtime.store(runtime, std::memory_order_release);
  const JobSettings& settings = runtime->settings();
  const bool recording = settings.mode == Mode::kObserve && AccountsForCalls(settings);
  if (recording || Chooses(settings.mode)) g_watching.store(runtime, std::memory_order_release);
}

}  // namespace

ProcessRuntime* RuntimeInstance::Get() noexcept {
  if (g_state.load(std::memory_order_acquire) == State::kNew) {
    // No exception may cross call_once: another unwinder handles the C library's frames, and would end the
    // process.
    NoThrow([] {
      std::call_once(g_once, [] {
        NoThrow(Create);
        g_state.store(State::kReady, std::memory_order_release);
      });
    });
  }
  return g_runtime.load(std::memory_order_acquire);
}

ProcessRuntime* RuntimeInstance::GetIfCreated() noexcept {
  return g_runtime.load(std::memory_order_acquire);
}

bool RuntimeInstance::WasRequested() noexcept {
  return g_state.load(std::memory_order_acquire) != State::kNew;
}

[[gnu::hot]] ProcessRuntime* RuntimeInstance::GetIfWatching() noexcept {
  if (g_state.load(std::memory_order_acquire) == State::kNew) Get();
  return g_watching.load(std::memory_order_acquire);
}

void RuntimeInstance::SaveAtExit() noexcept {
  ::atexit([] {
    if (ProcessRuntime* runtime = GetIfCreated()) runtime->SaveAtExit();
  });
}

}  // namespace dynamiccl
