// SPDX-License-Identifier: Apache-2.0
// Calls into the profiler plugin. See profiler_session.h.
#include "src/hostccl/plugin_host/profiler_session.h"

#include <atomic>

#include "src/hostccl/debug_log.h"

namespace dynamiccl::hostccl {
namespace {

// The kinds of events that the plugin wants. The plugin's init gets a pointer to this variable, and the
// plugin writes a plain int.
int activation_mask = 0;

}  // namespace

int ProfilerSession::mask() {
  return std::atomic_ref(activation_mask).load(std::memory_order_relaxed);
}

std::shared_ptr<ProfilerSession> ProfilerSession::Open(const CommunicatorInfo& info, const char* name) {
  auto profiler = AcquireProfiler();
  if (profiler == nullptr) return nullptr;
  void* context = nullptr;
  const ncclResult_t result = profiler->functions.init(&context, info.id, &activation_mask, name,
                                                       info.n_nodes, info.n_ranks, info.rank, PluginLogger);
  if (result != ncclSuccess) {
    Info(NCCL_SUBSYS_INIT, "Profiler init failed with error '{}'. Continue without profiler.",
         static_cast<int>(result));
    return nullptr;
  }
  Info(NCCL_SUBSYS_INIT, "Profiler event mask: {:#x}", mask());
  return std::make_shared<ProfilerSession>(std::move(profiler), context, info.rank);
}

void* ProfilerSession::Start(ncclProfilerEventDescr_v7_t event) const {
  const std::shared_lock lock(mutex_);
  if (profiler_ == nullptr) return nullptr;
  event.rank = rank_;
  void* handle = nullptr;
  profiler_->functions.startEvent(context_, &handle, &event);
  return handle;
}

void ProfilerSession::Stop(void* handle) const {
  if (handle == nullptr) return;
  const std::shared_lock lock(mutex_);
  if (profiler_ != nullptr) profiler_->functions.stopEvent(handle);
}

void ProfilerSession::Record(void* handle, ncclProfilerEventState_t state) const {
  if (handle == nullptr) return;
  const std::shared_lock lock(mutex_);
  if (profiler_ != nullptr) profiler_->functions.recordEventState(handle, state, nullptr);
}

void ProfilerSession::RecordTime(void* handle, ncclProfilerEventState_t state, int64_t ns) const {
  if (handle == nullptr) return;
  ncclProfilerEventStateArgs_v7_t arguments{};
  arguments.kernelCh.pTimer = static_cast<uint64_t>(ns);
  const std::shared_lock lock(mutex_);
  if (profiler_ != nullptr) profiler_->functions.recordEventState(handle, state, &arguments);
}

void ProfilerSession::Finalize() {
  const std::lock_guard lock(mutex_);
  if (profiler_ == nullptr) return;
  // As in NCCL, the plugin's finalize is not called if its init set no context.
  if (context_ != nullptr) profiler_->functions.finalize(context_);
  profiler_.reset();
}

}  // namespace dynamiccl::hostccl
