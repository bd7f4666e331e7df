// SPDX-License-Identifier: Apache-2.0
// What ncclComm_t points at: the communicator once it exists, and what ncclCommGetAsyncError says of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "src/base/status.h"
#include "src/hostccl/background_job.h"
#include "src/hostccl/communicator.h"
#include "src/nccl_abi/nccl_api.h"

// Handles are never given back to the system, so that one that was destroyed can be told from a live one.
struct ncclComm {
  static constexpr uint64_t kMagic = 0x4d4d4f43'4c434348;  // "HCCLCOMM"

  std::atomic<uint64_t> magic{0};
  bool blocking = true;
  // Written before `state` leaves ncclInProgress; null when that failed.
  std::shared_ptr<dynamiccl::hostccl::Communicator> communicator;
  // Non-blocking: how the latest call on it went, ncclInProgress while its job runs.
  std::atomic<ncclResult_t> state{ncclSuccess};
  std::atomic<bool> finalized{false};
  // ncclCommGetUniqueId gave an id that no ncclCommGrow has used yet.
  std::atomic<bool> grow_id_out{false};

  std::mutex job_mutex;
  std::shared_ptr<dynamiccl::hostccl::BackgroundJob> job;  // the latest; shared by all handles of its group
};

namespace dynamiccl::hostccl {

ncclComm_t NewHandle(bool blocking);
// The job must have ended. The communicator lives on while work refers to it.
void FreeHandle(ncclComm_t handle);

// Not null, made by NewHandle, not freed.
bool IsLive(ncclComm_t handle);

// The communicator of a handle that may be used now. kInvalidArgument: no live handle, or its last
// non-blocking call is still in progress; else the error of its initialisation.
Result<std::shared_ptr<Communicator>> CheckCommunicator(ncclComm_t handle);

// What ncclCommGetAsyncError gives for a live handle.
ncclResult_t StateOf(const ncclComm& handle);

// What a call on this handle returns when it went as `result`: that, or for a non-blocking one its state, in
// which an error is kept. Null and dead handles: `result`.
ncclResult_t ResultFor(ncclComm_t handle, ncclResult_t result);

// Waits of its job, if there is one, end soon.
void CancelJob(ncclComm& handle);
// Until the handle's job has ended, if there is one.
void WaitForJob(ncclComm& handle);

}  // namespace dynamiccl::hostccl
