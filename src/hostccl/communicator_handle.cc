// SPDX-License-Identifier: Apache-2.0
// The pool of handles. See communicator_handle.h.
#include "src/hostccl/communicator_handle.h"

#include <deque>
#include <thread>
#include <utility>

#include "src/transport/process_identity.h"

namespace dynamiccl::hostccl {
namespace {

// A dead handle is reused only after this many other handles have died. So a program that uses a destroyed
// handle gets an error, unless 1,024 further communicators have been destroyed since.
constexpr size_t kDeadHandles = 1024;

// All handles of the process. The pool is never destroyed, because programs destroy communicators from static
// destructors.
struct HandlePool {
  std::mutex mutex;
  std::deque<ncclComm_t> dead;
};

HandlePool& Pool() {
  static auto* const pool = new HandlePool;
  return *pool;
}

// Returns a new handle, or the one that has been dead for the longest time.
ncclComm_t TakeHandle() {
  HandlePool& pool = Pool();
  const std::lock_guard lock(pool.mutex);
  if (pool.dead.size() < kDeadHandles) return new ncclComm;
  ncclComm_t const handle = pool.dead.front();
  pool.dead.pop_front();
  return handle;
}

// Returns a reference to the latest job. The reference keeps the job alive while the caller waits for it.
std::shared_ptr<BackgroundJob> JobOf(ncclComm& handle) {
  const std::lock_guard lock(handle.mutex);
  return handle.job;
}

tl::unexpected<Error> DeadHandle() {
  return MakeError(ErrorKind::kInvalidArgument, "the communicator handle is null or was destroyed");
}

}  // namespace

ncclComm_t NewHandle(bool blocking) {
  ncclComm_t const handle = TakeHandle();
  handle->blocking = blocking;
  handle->process = ProcessToken();
  handle->state = ncclSuccess;
  handle->finalized = false;
  handle->grow_id_out = false;
  handle->magic.store(ncclComm::kMagic, std::memory_order_release);
  return handle;
}

// A thread first counts itself as a user and then reads `magic`; this function does the reverse, and all four
// accesses are in one total order (seq_cst). So either the thread sees that the handle is dead, or this
// function waits for the thread. The references are dropped after the mutex is released, because both
// destructors may wait.
bool FreeHandle(ncclComm_t handle) {
  if (handle->magic.exchange(0) != ncclComm::kMagic) return false;
  while (handle->users.load() != 0) std::this_thread::yield();
  std::shared_ptr<Communicator> communicator;
  std::shared_ptr<BackgroundJob> job;
  {
    const std::lock_guard lock(handle->mutex);
    communicator.swap(handle->communicator);
    job.swap(handle->job);
  }
  HandlePool& pool = Pool();
  const std::lock_guard lock(pool.mutex);
  pool.dead.push_back(handle);
  return true;
}

const std::shared_ptr<Communicator>* HandleUse::communicator() const {
  const bool usable = handle_.magic.load() == ncclComm::kMagic && handle_.process == ProcessToken();
  return usable && handle_.blocking ? &handle_.communicator : nullptr;
}

bool FreeInherited(ncclComm_t handle) {
  if (handle->process == ProcessToken()) return false;
  handle->magic.store(0, std::memory_order_release);
  return true;
}

bool IsLive(ncclComm_t handle) {
  return handle != nullptr && handle->magic.load(std::memory_order_acquire) == ncclComm::kMagic;
}

std::shared_ptr<Communicator> CommunicatorOf(ncclComm& handle) {
  const std::lock_guard lock(handle.mutex);
  return handle.communicator;
}

Result<std::shared_ptr<Communicator>> CheckCommunicator(ncclComm_t handle) {
  if (!IsLive(handle)) return DeadHandle();
  if (handle->process != ProcessToken()) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "the communicator belongs to the process that forked this one"),
                    "make a new communicator after fork()");
  }
  if (handle->state.load(std::memory_order_acquire) == ncclInProgress) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "the communicator was used before its previous call had ended: ask "
                     "ncclCommGetAsyncError until it is not ncclInProgress");
  }
  if (auto communicator = CommunicatorOf(*handle)) return communicator;
  if (!IsLive(handle)) return DeadHandle();  // another thread freed it since the first look
  return MakeError(ErrorKind::kPeerFailed, "the communicator's initialisation failed");
}

ncclResult_t StateOf(ncclComm& handle) {
  const ncclResult_t state = handle.state.load(std::memory_order_acquire);
  if (state != ncclSuccess) return state;
  const auto communicator = CommunicatorOf(handle);
  return communicator == nullptr ? state : communicator->async_error();
}

ncclResult_t ResultFor(ncclComm_t handle, ncclResult_t result) {
  if (!IsLive(handle) || handle->blocking) return result;
  ncclResult_t healthy = ncclSuccess;
  if (result != ncclSuccess && result != ncclInProgress) {
    handle->state.compare_exchange_strong(healthy, result);
    return result;
  }
  return StateOf(*handle);
}

void CancelJob(ncclComm& handle) {
  if (const auto job = JobOf(handle)) job->Cancel();
}

void WaitForJob(ncclComm& handle) {
  if (const auto job = JobOf(handle)) job->Wait();
}

}  // namespace dynamiccl::hostccl
