// SPDX-License-Identifier: Apache-2.0
// The hostccl* functions of src/nccl_abi/host_stream.h, and the table of live handles. A handle is the
// address of its object, and a map is searched for it, so that a handle of a destroyed object is an error and
// not a crash.
#include <pthread.h>

#include <atomic>
#include <map>
#include <utility>

#pragma GCC visibility push(default)
#include "src/nccl_abi/host_stream.h"
#pragma GCC visibility pop

#include "src/hostccl/host_stream.h"

using dynamiccl::hostccl::Completion;
using dynamiccl::hostccl::FindStream;
using dynamiccl::hostccl::HostStream;

// An event. `latest` is the completion that was recorded last; null until the first record.
struct hostcclEvent {
  std::mutex mutex;
  std::shared_ptr<Completion> latest;
};

namespace dynamiccl::hostccl {
namespace {

struct Handles;
Handles& AllHandles();

// The live streams and events. The object is never destroyed, because threads may use it until the process
// ends.
struct Handles {
  // A child of fork() gets the mutex unlocked, whatever the parent's threads do, and searches for each stream
  // again, because the child cannot use its parent's streams.
  Handles() {
    ::pthread_atfork([] { AllHandles().mutex.lock(); }, [] { AllHandles().mutex.unlock(); },
                     [] {
                       AllHandles().ended.fetch_add(1, std::memory_order_release);
                       AllHandles().mutex.unlock();
                     });
  }

  std::mutex mutex;
  std::map<cudaStream_t, std::shared_ptr<HostStream>> streams;
  // Number of streams that were destroyed and of forks that led to this process. A thread's LastStream is
  // valid as long as this number is the one it saw.
  std::atomic<uint64_t> ended{0};
  std::map<hostcclEvent_t, std::shared_ptr<hostcclEvent>> events;
  std::shared_ptr<HostStream> null_stream;
};

Handles& AllHandles() {
  static auto* const handles = new Handles;
  return *handles;
}

std::shared_ptr<hostcclEvent> FindEvent(hostcclEvent_t handle) {
  Handles& handles = AllHandles();
  const std::lock_guard lock(handles.mutex);
  const auto found = handles.events.find(handle);
  return found == handles.events.end() ? nullptr : found->second;
}

// Stores the completion that an event recorded last in `latest`. Returns false for an unknown handle.
bool LatestRecord(hostcclEvent_t handle, std::shared_ptr<Completion>& latest) {
  const auto event = FindEvent(handle);
  if (event == nullptr) return false;
  const std::lock_guard lock(event->mutex);
  latest = event->latest;
  return true;
}

// The stream that a thread used last. Programs mostly use one stream again and again, and searching the
// table, with its lock, takes as much as a tenth of a small call. This object does not keep the stream alive.
struct LastStream {
  cudaStream_t handle = nullptr;
  uint64_t ended = 0;
  std::weak_ptr<HostStream> stream;  // empty at first
};

// Keeps a stream that this process inherited from its parent from being destroyed.
void Leak(std::shared_ptr<HostStream>&& stream) {
  new std::shared_ptr<HostStream>(std::move(stream));
}

std::shared_ptr<HostStream> SearchStream(Handles& handles, cudaStream_t handle) {
  const std::lock_guard lock(handles.mutex);
  if (handle == nullptr) {
    if (handles.null_stream != nullptr && handles.null_stream->inherited())
      Leak(std::move(handles.null_stream));
    if (handles.null_stream == nullptr) handles.null_stream = std::make_shared<HostStream>();
    return handles.null_stream;
  }
  const auto found = handles.streams.find(handle);
  return found == handles.streams.end() || found->second->inherited() ? nullptr : found->second;
}

}  // namespace

// The number of ended streams is read before the search. So if a stream is destroyed during the search, the
// next call searches again.
std::shared_ptr<HostStream> FindStream(cudaStream_t handle) {
  static thread_local LastStream last;
  Handles& handles = AllHandles();
  const uint64_t ended = handles.ended.load(std::memory_order_acquire);
  if (last.handle == handle && last.ended == ended) {
    if (auto stream = last.stream.lock()) return stream;
  }
  auto found = SearchStream(handles, handle);
  last = {handle, ended, found};
  return found;
}

}  // namespace dynamiccl::hostccl

using namespace dynamiccl::hostccl;

ncclResult_t hostcclStreamCreate(cudaStream_t* stream) {
  if (stream == nullptr) return ncclInvalidArgument;
  auto created = std::make_shared<HostStream>();
  *stream = reinterpret_cast<cudaStream_t>(created.get());
  Handles& handles = AllHandles();
  const std::lock_guard lock(handles.mutex);
  handles.streams[*stream] = std::move(created);
  return ncclSuccess;
}

ncclResult_t hostcclStreamDestroy(cudaStream_t stream) {
  std::shared_ptr<HostStream>
      last;  // destroyed after the lock is released, because its destructor waits for work
  Handles& handles = AllHandles();
  const std::lock_guard lock(handles.mutex);
  const auto found = handles.streams.find(stream);
  if (found == handles.streams.end()) return ncclInvalidArgument;
  last = std::move(found->second);
  handles.streams.erase(found);
  handles.ended.fetch_add(1, std::memory_order_release);
  if (last->inherited()) Leak(std::move(last));
  return ncclSuccess;
}

ncclResult_t hostcclStreamSynchronize(cudaStream_t stream) {
  const auto found = FindStream(stream);
  if (found == nullptr) return ncclInvalidArgument;
  if (!found->idle()) found->Synchronize();
  return found->TakeError();
}

ncclResult_t hostcclStreamQuery(cudaStream_t stream) {
  const auto found = FindStream(stream);
  if (found == nullptr) return ncclInvalidArgument;
  return found->idle() ? ncclSuccess : ncclInProgress;
}

ncclResult_t hostcclLaunchHostFunc(cudaStream_t stream, void (*function)(void*), void* data) {
  const auto found = FindStream(stream);
  if (found == nullptr || function == nullptr) return ncclInvalidArgument;
  found->Enqueue([function, data] {
    function(data);
    return ncclSuccess;
  });
  return ncclSuccess;
}

ncclResult_t hostcclEventCreate(hostcclEvent_t* event) {
  if (event == nullptr) return ncclInvalidArgument;
  auto created = std::make_shared<hostcclEvent>();
  *event = created.get();
  Handles& handles = AllHandles();
  const std::lock_guard lock(handles.mutex);
  handles.events[*event] = std::move(created);
  return ncclSuccess;
}

ncclResult_t hostcclEventDestroy(hostcclEvent_t event) {
  Handles& handles = AllHandles();
  const std::lock_guard lock(handles.mutex);
  return handles.events.erase(event) == 1 ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t hostcclEventRecord(hostcclEvent_t event, cudaStream_t stream) {
  const auto found = FindEvent(event);
  const auto recorded = FindStream(stream);
  if (found == nullptr || recorded == nullptr) return ncclInvalidArgument;
  const std::lock_guard lock(found->mutex);
  found->latest = recorded->Record();
  return ncclSuccess;
}

ncclResult_t hostcclEventSynchronize(hostcclEvent_t event) {
  std::shared_ptr<Completion> latest;
  if (!LatestRecord(event, latest)) return ncclInvalidArgument;
  if (latest == nullptr) return ncclSuccess;
  latest->Wait();
  return latest->result();
}

ncclResult_t hostcclEventQuery(hostcclEvent_t event) {
  std::shared_ptr<Completion> latest;
  if (!LatestRecord(event, latest)) return ncclInvalidArgument;
  return latest == nullptr || latest->done() ? ncclSuccess : ncclInProgress;
}

ncclResult_t hostcclStreamWaitEvent(cudaStream_t stream, hostcclEvent_t event) {
  std::shared_ptr<Completion> latest;
  const auto waiting = FindStream(stream);
  if (waiting == nullptr || !LatestRecord(event, latest)) return ncclInvalidArgument;
  if (latest != nullptr && !latest->done()) waiting->WaitFor(std::move(latest));
  return ncclSuccess;
}

ncclResult_t hostcclEventTime(hostcclEvent_t event, int64_t* nanoseconds) {
  std::shared_ptr<Completion> latest;
  if (nanoseconds == nullptr || !LatestRecord(event, latest) || latest == nullptr) return ncclInvalidArgument;
  if (!latest->done()) return ncclInProgress;
  *nanoseconds = latest->done_ns();
  return ncclSuccess;
}
