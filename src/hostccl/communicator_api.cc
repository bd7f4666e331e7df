// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/communicator_api.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/hostccl/api_call.h"
#include "src/hostccl/communicator_init.h"
#include "src/hostccl/debug_log.h"
#include "src/hostccl/group.h"

namespace dynamiccl::hostccl {
namespace {

// Reads no more of the program's structure than it says it has; what it lacks keeps the value of `inherited`.
Result<ncclConfig_t> ReadConfig(const ncclConfig_t* config, const ncclConfig_t& inherited) {
  if (config == nullptr) return inherited;
  if (config->magic != NCCL_API_MAGIC || config->size < offsetof(ncclConfig_t, blocking)) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "ncclConfig_t was not initialised with NCCL_CONFIG_INITIALIZER");
  }
  ncclConfig_t result = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  std::memcpy(&result, config, std::min(config->size, sizeof(result)));
  if (result.minCTAs != NCCL_CONFIG_UNDEF_INT && result.minCTAs < 1) {
    return MakeError(ErrorKind::kInvalidArgument, "ncclConfig_t: minCTAs {} is not positive", result.minCTAs);
  }
  if (result.maxCTAs != NCCL_CONFIG_UNDEF_INT && result.maxCTAs < std::max(1, result.minCTAs)) {
    return MakeError(ErrorKind::kInvalidArgument, "ncclConfig_t: maxCTAs {} is less than minCTAs",
                     result.maxCTAs);
  }
  // Strings belong to the program and may go away; nothing here uses them later.
  result.netName = nullptr;
  result.commName = nullptr;
  return result;
}

ncclResult_t Publish(Result<std::shared_ptr<Communicator>> made, ncclComm_t* comm) {
  if (!made) return Refuse(made.error());
  *comm = *made == nullptr ? nullptr : new ncclComm{ncclComm::kMagic, std::move(*made)};
  return ncclSuccess;
}

void Free(ncclComm_t comm) {
  comm->communicator->Close();
  comm->magic = 0;
  delete comm;
}

}  // namespace

ncclResult_t GetUniqueId(ncclUniqueId* id) {
  if (id == nullptr) return ncclInvalidArgument;
  auto made = MakeUniqueId();
  if (!made) return Refuse(made.error());
  *id = *made;
  return ncclSuccess;
}

ncclResult_t InitRank(ncclComm_t* comm, int n_ranks, const ncclUniqueId& id, int rank,
                      const ncclConfig_t* config) {
  if (comm == nullptr || n_ranks < 1 || rank < 0 || rank >= n_ranks) {
    return Refuse(
        Error{ErrorKind::kInvalidArgument, fmt::format("rank {} of {} is not valid", rank, n_ranks), {}});
  }
  const auto read = ReadConfig(config, DYNAMICCL_NCCL_CONFIG_INITIALIZER);
  if (!read) return Refuse(read.error());
  const InitRequest request{n_ranks, rank, 0, id, *read};
  *comm = nullptr;
  return IssueSetup([request, comm] { return Publish(InitCommunicator(request), comm); });
}

ncclResult_t InitAll(ncclComm_t* comms, int count, const int* devices) {
  if (comms == nullptr || count < 1) return ncclInvalidArgument;
  ncclUniqueId id{};
  const ncclResult_t made = GetUniqueId(&id);
  if (made != ncclSuccess) return made;
  GroupStart();
  for (int rank = 0; rank < count; ++rank) {
    const int device = devices == nullptr ? rank : devices[rank];
    const InitRequest request{count, rank, device, id, DYNAMICCL_NCCL_CONFIG_INITIALIZER};
    ncclComm_t* const comm = &comms[rank];
    *comm = nullptr;
    IssueSetup([request, comm] { return Publish(InitCommunicator(request), comm); });
  }
  return GroupEnd();
}

ncclResult_t Split(ncclComm_t comm, int color, int key, ncclComm_t* new_comm, const ncclConfig_t* config) {
  const auto parent = CheckCommunicator(comm);
  if (!parent) return Refuse(parent.error());
  if (new_comm == nullptr || (color < 0 && color != NCCL_SPLIT_NOCOLOR)) {
    return Refuse(Error{ErrorKind::kInvalidArgument, fmt::format("split colour {} is not valid", color), {}});
  }
  const auto read = ReadConfig(config, (*parent)->config());
  if (!read) return Refuse(read.error());
  const SplitRequest request{color, key, *read};
  *new_comm = nullptr;
  return IssueSetup([parent = *parent, request, new_comm] {
    return Publish(SplitCommunicator(*parent, request), new_comm);
  });
}

ncclResult_t Finalize(ncclComm_t comm) {
  const auto communicator = CheckCommunicator(comm);
  if (!communicator) return Refuse(communicator.error());
  (*communicator)->WaitForLaunches();
  return (*communicator)->async_error();
}

ncclResult_t Destroy(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  const auto communicator = CheckCommunicator(comm);
  if (!communicator) return Refuse(communicator.error());
  (*communicator)->WaitForLaunches();
  Free(comm);
  return ncclSuccess;
}

ncclResult_t Abort(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  const auto communicator = CheckCommunicator(comm);
  if (!communicator) return Refuse(communicator.error());
  (*communicator)->Abort();
  (*communicator)->WaitForLaunches();
  Free(comm);
  return ncclSuccess;
}

}  // namespace dynamiccl::hostccl
