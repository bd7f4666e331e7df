// SPDX-License-Identifier: Apache-2.0
// Exchanges NCCL's unique id through torch's store. The destructor is written so that the threads of two
// streams do not wait for each other.
#include "zero_workloads/torch_backend/communicator.h"

#include <c10/util/Exception.h>

#include <cstring>
#include <memory>
#include <thread>
#include <utility>

namespace dynamiccl::torch_backend {
namespace {

// True on the thread of a communicator's stream, once a function passed to WhenDone has run there.
thread_local bool on_a_streams_thread = false;

void Check(ncclResult_t result, const char* function) {
  TORCH_CHECK_WITH(DistBackendError, result == ncclSuccess, function, ": ", ncclGetErrorString(result), " (",
                   ncclGetLastError(nullptr), "); NCCL_DEBUG=WARN shows NCCL's own reason");
}

std::string ArrivalKey(const Communicator::Rendezvous& rendezvous, int rank) {
  return c10::str(rendezvous.key, "_rank_", rank);
}

// Every rank announces itself in the store and waits until all ranks have done so. NCCL's own rendezvous
// cannot serve for this, because its time-out is the same for all groups of the process.
void AwaitAllRanks(c10d::Store& store, const Communicator::Rendezvous& rendezvous) {
  store.set(ArrivalKey(rendezvous, rendezvous.rank), std::vector<uint8_t>{1});
  std::vector<std::string> arrivals;
  for (int rank = 0; rank < rendezvous.size; ++rank) arrivals.push_back(ArrivalKey(rendezvous, rank));
  try {
    store.wait(arrivals, rendezvous.timeout);
  } catch (const std::exception&) {
    std::string missing;
    for (int rank = 0; rank < rendezvous.size; ++rank)
      if (!store.check({arrivals[static_cast<size_t>(rank)]})) missing += c10::str(" ", rank);
    TORCH_CHECK_WITH(DistBackendError, missing.empty(), rendezvous.name, " of ", rendezvous.size,
                     " ranks could not be made on rank ", rendezvous.rank, ": Timed out after ",
                     rendezvous.timeout.count(), " ms, the group's timeout; missing in the group: rank",
                     missing);
    throw;
  }
}

// Rank 0 creates NCCL's unique id when all ranks have arrived. The others read it from the store.
ncclUniqueId AgreeOnId(c10d::Store& store, const Communicator::Rendezvous& rendezvous) {
  AwaitAllRanks(store, rendezvous);
  ncclUniqueId id{};
  if (rendezvous.rank == 0) {
    Check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    const auto* bytes = reinterpret_cast<const uint8_t*>(id.internal);
    store.set(rendezvous.key, std::vector<uint8_t>(bytes, bytes + sizeof(id.internal)));
    return id;
  }
  store.wait({rendezvous.key}, rendezvous.timeout);
  const std::vector<uint8_t> bytes = store.get(rendezvous.key);
  TORCH_CHECK_WITH(DistBackendError, bytes.size() == sizeof(id.internal), "the store's key ", rendezvous.key,
                   " holds ", bytes.size(), " bytes, not NCCL's id: ranks run different releases");
  std::memcpy(id.internal, bytes.data(), bytes.size());
  return id;
}

// Deletes the keys of the rendezvous from the store, so that a later group of the same name does not find
// them. Call it when all ranks have read the keys.
void DeleteKeys(c10d::Store& store, const Communicator::Rendezvous& rendezvous) {
  try {
    store.deleteKey(ArrivalKey(rendezvous, rendezvous.rank));
    if (rendezvous.rank == 0) store.deleteKey(rendezvous.key);
  } catch (const std::exception&) {
    // The exception is ignored: the process that serves the store has already ended, and the keys with it.
  }
}

}  // namespace

Communicator::Communicator(c10d::Store& store, const Rendezvous& rendezvous) {
  const ncclUniqueId id = AgreeOnId(store, rendezvous);
  Check(ncclCommInitRank(&handle_, rendezvous.size, id, rendezvous.rank), "ncclCommInitRank");
  DeleteKeys(store, rendezvous);
  Check(hostcclStreamCreate(&stream_), "hostcclStreamCreate");
}

Communicator::Communicator(Communicator& parent, int color) {
  Check(ncclCommSplit(parent.handle(), color, 0, &handle_, nullptr), "ncclCommSplit");
  Check(hostcclStreamCreate(&stream_), "hostcclStreamCreate");
}

void Communicator::LeaveOut(Communicator& parent) {
  ncclComm_t none = nullptr;
  Check(ncclCommSplit(parent.handle(), NCCL_SPLIT_NOCOLOR, 0, &none, nullptr), "ncclCommSplit");
}

Communicator::~Communicator() {
  const auto end = [stream = stream_, handle = handle_] {
    if (stream != nullptr) hostcclStreamDestroy(stream);
    if (handle != nullptr) ncclCommDestroy(handle);
  };
  if (!on_a_streams_thread)
    end();
  else
    // A stream's thread cannot wait for itself, and the threads of two streams cannot wait for each other. A
    // new thread therefore waits for the stream and ends it.
    std::thread(end).detach();
}

void Communicator::WhenDone(std::function<void()> function) {
  hostcclLaunchHostFunc(
      stream_,
      [](void* data) {
        on_a_streams_thread = true;
        const std::unique_ptr<std::function<void()>> call(static_cast<std::function<void()>*>(data));
        (*call)();
      },
      new std::function<void()>(std::move(function)));
}

ncclComm_t Communicator::handle() {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK_WITH(DistBackendError, handle_ != nullptr,
                   "the process group cannot be used any more: ", aborted_because_);
  return handle_;
}

void Communicator::Abort(const std::string& reason) {
  ncclComm_t handle = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (handle_ == nullptr) return;
    aborted_because_ = reason;
    handle = std::exchange(handle_, nullptr);
  }
  // ncclCommAbort waits for all calls in flight. When the calls end, functions on the stream's thread call
  // Failure(), which locks the mutex. The mutex must therefore not be held here.
  ncclCommAbort(handle);
}

std::string Communicator::Failure() {
  const std::lock_guard lock(mutex_);
  if (handle_ == nullptr) return aborted_because_;
  ncclResult_t error = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(handle_, &error);
  if (asked != ncclSuccess) error = asked;
  if (error == ncclSuccess || error == ncclInProgress) return {};
  return std::string(ncclGetErrorString(error)) + " (" + ncclGetLastError(handle_) + ")";
}

std::string Communicator::Refusal(ncclResult_t result) {
  const std::lock_guard lock(mutex_);
  return std::string(ncclGetErrorString(result)) + " (" + ncclGetLastError(handle_) + ")";
}

}  // namespace dynamiccl::torch_backend
