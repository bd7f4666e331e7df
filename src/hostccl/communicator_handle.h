// SPDX-License-Identifier: Apache-2.0
// An ncclComm_t points to a handle. The handle holds the communicator once the communicator exists, and the
// result of ncclCommGetAsyncError. The life of a handle:
//
//   NewHandle -> live --(non-blocking call)--> state ncclInProgress --> state = the job's result
//   live --ncclCommFinalize or ncclCommRevoke--> finalized: no more data calls
//   live --ncclCommDestroy or ncclCommAbort--> FreeHandle -> dead: every call refuses it
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "src/base/status.h"
#include "src/hostccl/background_job.h"
#include "src/hostccl/communicator.h"
#include "src/nccl_abi/nccl_api.h"

// A handle. Its memory is never returned to the system, so a destroyed handle can be told from a live one.
// Any thread may read the atomic members. `communicator` is written before `state` changes from
// ncclInProgress, and again by FreeHandle, while other threads may read it (CommunicatorOf).
struct ncclComm {
  static constexpr uint64_t kMagic = 0x4d4d4f43'4c434348;  // "HCCLCOMM"

  std::atomic<uint64_t> magic{0};
  std::atomic<uint64_t> users{0};  // number of HandleUse objects
  bool blocking = true;
  uint64_t process = 0;  // ProcessToken() of the process that made the handle
  // Null until the communicator has been made; stays null if that failed.
  std::shared_ptr<dynamiccl::hostccl::Communicator> communicator;
  // For a non-blocking handle: the result of its latest call, or ncclInProgress while that call runs.
  std::atomic<ncclResult_t> state{ncclSuccess};
  std::atomic<bool> finalized{false};
  // True after ncclCommGetUniqueId has returned an id, until an ncclCommGrow has used the id.
  std::atomic<bool> grow_id_out{false};

  // The mutex guards the pointers to the communicator, once the handle is known to the program, and to the
  // job.
  std::mutex mutex;
  // The latest background job, shared by all handles of its group.
  std::shared_ptr<dynamiccl::hostccl::BackgroundJob> job;
};

namespace dynamiccl::hostccl {

// Makes a live handle, without a communicator yet.
ncclComm_t NewHandle(bool blocking);
// Frees a handle, whose job must have ended. It waits for every HandleUse of other threads. The communicator
// lives until no queued work and no other thread's call refers to it. Returns false, without an effect, for a
// handle that another thread has freed.
bool FreeHandle(ncclComm_t handle);

// Gives a thread the communicator of a blocking handle for one short call, without the handle's mutex and
// without a reference of its own: FreeHandle waits until the HandleUse is destroyed. Meanwhile the thread may
// wait for peers only briefly, and must not free the handle.
class HandleUse {
 public:
  explicit HandleUse(ncclComm& handle) : handle_(handle) { handle_.users.fetch_add(1); }
  ~HandleUse() { handle_.users.fetch_sub(1, std::memory_order_release); }
  HandleUse(const HandleUse&) = delete;
  HandleUse& operator=(const HandleUse&) = delete;

  // Returns the communicator. Returns null if the handle is not live, not blocking, or was made before
  // fork().
  const std::shared_ptr<Communicator>* communicator() const;

 private:
  ncclComm& handle_;
};

// Frees a handle in a child of fork(), and returns false in the process that made the handle. The child has
// none of the communicator's threads, and plugins and shared memory are the parent's, so it destroys nothing.
// It takes no lock either: a thread of the parent may have held it.
bool FreeInherited(ncclComm_t handle);

// Returns true for a handle from NewHandle until FreeHandle. Returns false for null.
bool IsLive(ncclComm_t handle);

// Returns the communicator of a handle; null without one. Another thread may free the handle meanwhile: the
// caller's reference stays valid.
std::shared_ptr<Communicator> CommunicatorOf(ncclComm& handle);

// Returns the communicator of a handle that may be used now. Returns kInvalidArgument if the handle is not
// live, was made before fork(), or its last non-blocking call is still in progress. Returns kPeerFailed if
// the initialisation of the communicator failed.
Result<std::shared_ptr<Communicator>> CheckCommunicator(ncclComm_t handle);

// Returns the result of ncclCommGetAsyncError for a live handle.
ncclResult_t StateOf(ncclComm& handle);

// Returns the result that the program gets for a call on this handle that ended with `result`. For a
// blocking, null or dead handle this is `result` itself. A non-blocking handle keeps an error as its state
// and returns it; after a success it returns its state.
ncclResult_t ResultFor(ncclComm_t handle, ncclResult_t result);

// Makes the waits of the handle's job end soon, if it has a job.
void CancelJob(ncclComm& handle);
// Blocks until the handle's job has ended, if it has one.
void WaitForJob(ncclComm& handle);

}  // namespace dynamiccl::hostccl
