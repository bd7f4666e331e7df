// SPDX-License-Identifier: Apache-2.0
// Checks arguments, defers set-up to the end of the group, and puts new communicators into handles.
// communicator_init.h does the set-up itself.
#include "src/hostccl/communicator_api.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/base/fail_point.h"
#include "src/hostccl/api_call.h"
#include "src/hostccl/communicator_config.h"
#include "src/hostccl/communicator_init.h"
#include "src/hostccl/debug_log.h"
#include "src/hostccl/group.h"

namespace dynamiccl::hostccl {
namespace {

ncclResult_t RefuseArgument(std::string message) {
  return Refuse(Error{ErrorKind::kInvalidArgument, std::move(message), {}});
}

// Logs a failed initialisation and makes the open group fail.
ncclResult_t RefuseInit(const InitError& error) {
  Warn("{}", error.message);
  NoteGroupError(error.result);
  return error.result;
}

// Puts a communicator into a new handle. Used for communicators that were made by a blocking call or from a
// parent.
ncclResult_t Publish(InitResult made, bool blocking, ncclComm_t* comm) {
  if (!made) return RefuseInit(made.error());
  if (*made == nullptr) return ncclSuccess;
  ncclComm_t const handle = NewHandle(blocking);
  handle->communicator = std::move(*made);
  *comm = handle;
  return ncclSuccess;
}

// Runs `make` at the group's end and puts the communicator into a handle. A non-blocking handle exists at
// once, without a communicator.
ncclResult_t MakeInto(ncclComm_t* comm, bool blocking, const Communicator* in_order_on,
                      std::function<InitResult()> make) {
  *comm = nullptr;
  if (blocking) {
    return IssueSetup(
        {nullptr, in_order_on, [comm, make = std::move(make)] { return Publish(make(), true, comm); }});
  }
  ncclComm_t const handle = NewHandle(false);
  *comm = handle;
  const ncclResult_t result = IssueSetup({handle, in_order_on, [handle, make = std::move(make)] {
                                            InitResult made = make();
                                            if (!made) return RefuseInit(made.error());
                                            handle->communicator = std::move(*made);
                                            return ncclSuccess;
                                          }});
  return ResultFor(handle, result);
}

// Runs `work` on an existing communicator at the group's end. The handle's state keeps the result.
ncclResult_t RunOn(ncclComm_t comm, const Communicator& communicator, std::function<ncclResult_t()> work) {
  return IssueSetup({comm, &communicator, std::move(work)});
}

// Frees the handle before it ends the plugins' sessions, so that no call of another thread can find the
// communicator meanwhile.
void Free(ncclComm_t comm) {
  const auto communicator = CommunicatorOf(*comm);
  if (FreeHandle(comm) && communicator != nullptr) communicator->Close();
}

// As in NCCL, a function that has begun to make a child of a non-blocking parent returns ncclSuccess. The
// parent's state shows the progress.
ncclResult_t BegunOn(ncclResult_t result) {
  return result == ncclInProgress ? ncclSuccess : result;
}

// Checks the arguments of ncclCommShrink: at least one rank is excluded, and not the calling rank. `excluded`
// is sorted.
ncclResult_t CheckExcluded(const Communicator& parent, const std::vector<int>& excluded) {
  if (excluded.empty()) return RefuseArgument("ncclCommShrink: no rank is excluded");
  if (excluded.front() < 0 || excluded.back() >= parent.n_ranks()) {
    return RefuseArgument(
        fmt::format("ncclCommShrink: the excluded ranks are not all in 0 to {}", parent.n_ranks() - 1));
  }
  if (std::binary_search(excluded.begin(), excluded.end(), parent.rank())) {
    return RefuseArgument(
        fmt::format("ncclCommShrink: rank {} is excluded and must not call", parent.rank()));
  }
  return ncclSuccess;
}

}  // namespace

ncclResult_t GetUniqueId(ncclUniqueId* id) {
  if (id == nullptr) return RefuseArgument("ncclGetUniqueId: the id is null");
  auto made = MakeUniqueId();
  if (!made) return Refuse(made.error());
  *id = *made;
  return ncclSuccess;
}

// If the program passes several ids, all ranks meet at the first one. Rank i ends the service of id i, for i
// above 0.
ncclResult_t InitRank(ncclComm_t* comm, const InitArguments& arguments) {
  const int n_ranks = arguments.n_ranks;
  const int rank = arguments.rank;
  if (comm == nullptr || n_ranks < 1 || rank < 0 || rank >= n_ranks) {
    return RefuseArgument(fmt::format("rank {} of {} is not valid, or the handle is null", rank, n_ranks));
  }
  const size_t n_ids = arguments.ids.size();
  if (n_ids == 0 || n_ids > static_cast<size_t>(n_ranks)) {
    return RefuseArgument(fmt::format("{} unique ids for {} ranks", n_ids, n_ranks));
  }
  const auto read = ReadConfig(arguments.config, DYNAMICCL_NCCL_CONFIG_INITIALIZER);
  if (!read) return Refuse(read.error());
  const InitRequest request{n_ranks, rank, arguments.device, arguments.ids.front(), *read};
  const bool retires = rank > 0 && static_cast<size_t>(rank) < n_ids;
  const ncclUniqueId spare = retires ? arguments.ids[static_cast<size_t>(rank)] : ncclUniqueId{};
  return MakeInto(comm, IsBlocking(*read), nullptr, [request, retires, spare]() -> InitResult {
    if (retires) DYNAMICCL_CHECK_OK(RetireUniqueId(spare));
    return InitCommunicator(request);
  });
}

// The ranks are made in one group, because the group's end makes them side by side: each waits for the
// others.
ncclResult_t InitAll(ncclComm_t* comms, int count, const int* devices) {
  if (comms == nullptr || count < 1) return RefuseArgument(fmt::format("ncclCommInitAll: {} ranks", count));
  ncclUniqueId id{};
  const ncclResult_t made = GetUniqueId(&id);
  if (made != ncclSuccess) return made;
  GroupStart();
  for (int rank = 0; rank < count; ++rank) {
    const int device = devices == nullptr ? rank : devices[rank];
    InitRank(&comms[rank], {count, rank, device, std::span(&id, 1), nullptr});
  }
  return GroupEnd();
}

// The parent's handle is busy until the child exists. The work at the group's end makes the child's handle.
ncclResult_t Split(ncclComm_t comm, int color, int key, ncclComm_t* new_comm, const ncclConfig_t* config) {
  const auto parent = CheckCommunicator(comm);
  if (!parent) return Refuse(parent.error());
  if (new_comm == nullptr || (color < 0 && color != NCCL_SPLIT_NOCOLOR)) {
    return RefuseArgument(fmt::format("split colour {} is not valid, or the new handle is null", color));
  }
  const auto read = ReadConfig(config, (*parent)->config());
  if (!read) return Refuse(read.error());
  const SplitRequest request{color, key, *read};
  *new_comm = nullptr;
  return BegunOn(RunOn(comm, **parent, [parent = *parent, request, new_comm] {
    return Publish(SplitCommunicator(*parent, request), IsBlocking(request.config), new_comm);
  }));
}

// NCCL_SHRINK_ABORT first ends the calls in progress. The parent then moves no data any more.
ncclResult_t Shrink(ncclComm_t comm, const ShrinkArguments& arguments, ncclComm_t* new_comm) {
  const auto parent = CheckCommunicator(comm);
  if (!parent) return Refuse(parent.error());
  if (new_comm == nullptr || (arguments.flags & ~NCCL_SHRINK_ABORT) != 0) {
    return RefuseArgument(
        fmt::format("ncclCommShrink: flags {:#x} are unknown, or the new handle is null", arguments.flags));
  }
  std::vector<int> excluded(arguments.excluded.begin(), arguments.excluded.end());
  std::sort(excluded.begin(), excluded.end());
  const ncclResult_t checked = CheckExcluded(**parent, excluded);
  if (checked != ncclSuccess) return checked;
  const auto read = ReadConfig(arguments.config, (*parent)->config());
  if (!read) return Refuse(read.error());
  if ((arguments.flags & NCCL_SHRINK_ABORT) != 0) (*parent)->Interrupt();
  *new_comm = nullptr;
  return BegunOn(RunOn(comm, **parent, [parent = *parent, excluded, config = *read, new_comm] {
    parent->WaitForLaunches();
    return Publish(ShrinkCommunicator(*parent, excluded, config), IsBlocking(config), new_comm);
  }));
}

ncclResult_t GetGrowId(ncclComm_t comm, ncclUniqueId* id) {
  const auto communicator = CheckCommunicator(comm);
  if (!communicator) return Refuse(communicator.error());
  if (comm->grow_id_out.exchange(true)) {
    return Refuse(Error{ErrorKind::kUnsupported,
                        "ncclCommGetUniqueId: the id given before was not used by ncclCommGrow yet",
                        {}});
  }
  const ncclResult_t result = GetUniqueId(id);
  if (result != ncclSuccess) comm->grow_id_out = false;
  return result;
}

// New ranks join as in ncclCommInitRank. Existing ranks first share the id over the old communicator.
ncclResult_t Grow(ncclComm_t comm, const GrowArguments& arguments, ncclComm_t* new_comm) {
  if (new_comm == nullptr) return RefuseArgument("ncclCommGrow: the new handle is null");
  if (comm == nullptr) {
    const auto ids = arguments.id == nullptr ? std::span<const ncclUniqueId>() : std::span(arguments.id, 1);
    return InitRank(new_comm, {arguments.n_ranks, arguments.rank, 0, ids, arguments.config});
  }
  const auto parent = CheckCommunicator(comm);
  if (!parent) return Refuse(parent.error());
  if (arguments.rank != -1 || arguments.n_ranks <= (*parent)->n_ranks()) {
    return RefuseArgument(
        fmt::format("ncclCommGrow: an existing rank passes -1 as its rank, not {}, and more "
                    "than {} ranks, not {}",
                    arguments.rank, (*parent)->n_ranks(), arguments.n_ranks));
  }
  const auto read = ReadConfig(arguments.config, (*parent)->config());
  if (!read) return Refuse(read.error());
  const InitRequest request{arguments.n_ranks, (*parent)->rank(), (*parent)->device(), {}, *read};
  const bool brings = arguments.id != nullptr;
  const ncclUniqueId id = brings ? *arguments.id : ncclUniqueId{};
  return BegunOn(MakeInto(new_comm, IsBlocking(*read), parent->get(),
                          [comm, parent = *parent, request, brings, id]() -> InitResult {
                            InitRequest shared = request;
                            DYNAMICCL_TRY(shared.id, ShareUniqueId(*parent, brings ? &id : nullptr));
                            InitResult made = InitCommunicator(shared);
                            if (made && brings) comm->grow_id_out = false;
                            return made;
                          }));
}

ncclResult_t Finalize(ncclComm_t comm) {
  PassFailPoint(FailPoint::kFinalize);
  if (comm == nullptr) return ncclSuccess;
  const auto communicator = CheckCommunicator(comm);
  if (!communicator) return Refuse(communicator.error());
  if (comm->finalized.exchange(true)) {
    return RefuseArgument("ncclCommFinalize: the communicator was finalized or revoked before");
  }
  return ResultFor(comm, RunOn(comm, **communicator, [communicator = *communicator] {
                     communicator->WaitForLaunches();
                     return communicator->async_error();
                   }));
}

ncclResult_t Revoke(ncclComm_t comm, int flags) {
  if (comm == nullptr) return ncclSuccess;
  if (!IsLive(comm) || flags != NCCL_REVOKE_DEFAULT) {
    return RefuseArgument(fmt::format("ncclCommRevoke: no live handle, or flags {:#x} are not 0", flags));
  }
  // A call that runs in the background must end first, so that its launches are ended too.
  WaitForJob(*comm);
  const auto communicator = CheckCommunicator(comm);
  if (!communicator) return Refuse(communicator.error());
  if (comm->finalized.exchange(true)) {
    return RefuseArgument("ncclCommRevoke: the communicator was finalized or revoked before");
  }
  (*communicator)->Interrupt();
  return ResultFor(comm, RunOn(comm, **communicator, [communicator = *communicator] {
                     communicator->WaitForLaunches();
                     return ncclSuccess;
                   }));
}

// A handle whose initialisation failed can be destroyed too, but not a handle whose job still runs.
ncclResult_t Destroy(ncclComm_t comm) {
  PassFailPoint(FailPoint::kDestroy);
  if (comm == nullptr || (IsLive(comm) && FreeInherited(comm))) return ncclSuccess;
  const auto communicator = CheckCommunicator(comm);
  if (!IsLive(comm) || comm->state == ncclInProgress) return Refuse(communicator.error());
  WaitForJob(*comm);
  if (communicator) (*communicator)->WaitForLaunches();
  Free(comm);
  return ncclSuccess;
}

// The job is cancelled and must end before the communicator is aborted, because the job may be making the
// communicator.
ncclResult_t Abort(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  if (!IsLive(comm)) return RefuseArgument("ncclCommAbort: the communicator handle was destroyed");
  if (FreeInherited(comm)) return ncclSuccess;
  CancelJob(*comm);
  WaitForJob(*comm);
  if (const auto communicator = CommunicatorOf(*comm)) {
    communicator->Abort();
    communicator->WaitForLaunches();
  }
  Free(comm);
  return ncclSuccess;
}

}  // namespace dynamiccl::hostccl
