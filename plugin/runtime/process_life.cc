// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/process_life.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "plugin/border/no_throw.h"
#include "plugin/runtime/process_runtime.h"

namespace dynamiccl {
namespace {

enum class State : int { kNew, kReady, kForked };

// Of the three, g_state is written last, so that a thread that sees kReady sees the runtime.
std::atomic<State> g_state{State::kNew};
std::atomic<ProcessRuntime*> g_runtime{nullptr};
std::atomic<ProcessRuntime*> g_watching{nullptr};
std::once_flag g_once;

// Runs in the child, between fork and its return.
void PassThroughInChild() {
  if (g_state.load() != State::kReady) return;
  g_state.store(State::kForked);
  g_runtime.store(nullptr);
  g_watching.store(nullptr);
}

// Called once. The fork handler is registered first, so that no child with a runtime is without it.
void Create() {
  ::pthread_atfork(nullptr, nullptr, PassThroughInChild);
  auto* runtime = new ProcessRuntime();
  g_runtime.store(runtime, std::memory_order_release);
  const JobSettings& settings = runtime->settings();
  const bool recording = settings.mode == Mode::kObserve && AccountsForCalls(settings);
  if (recording || Chooses(settings.mode)) g_watching.store(runtime, std::memory_order_release);
}

}  // namespace

ProcessRuntime* ProcessLife::Runtime() noexcept {
  if (g_state.load(std::memory_order_acquire) == State::kNew) {
    // No exception may cross call_once: the C library's part of it is unwound by another unwinder than ours,
    // which ends the process.
    NoThrow([] {
      std::call_once(g_once, [] {
        NoThrow(Create);
        g_state.store(State::kReady, std::memory_order_release);
      });
    });
  }
  return g_runtime.load(std::memory_order_acquire);
}

ProcessRuntime* ProcessLife::Existing() noexcept {
  return g_runtime.load(std::memory_order_acquire);
}

bool ProcessLife::WasTried() noexcept {
  return g_state.load(std::memory_order_acquire) != State::kNew;
}

[[gnu::hot]] ProcessRuntime* ProcessLife::Watching() noexcept {
  if (g_state.load(std::memory_order_acquire) == State::kNew) Runtime();
  return g_watching.load(std::memory_order_acquire);
}

void ProcessLife::SaveAtExit() noexcept {
  ::atexit([] {
    if (ProcessRuntime* runtime = Existing()) runtime->SaveAtExit();
  });
}

}  // namespace dynamiccl
