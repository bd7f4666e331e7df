// SPDX-License-Identifier: Apache-2.0
// The functions of nccl_device.h that describe a communicator: its properties, and teams of its ranks.
#include <algorithm>
#include <cstring>

#include "src/hostccl/api_call.h"
#include "src/hostccl/nccl_export.h"

using namespace dynamiccl;
using namespace dynamiccl::hostccl;

namespace {

// The layout of nccl_device/host.h of 2.32. Later releases only append members. `size` is the size of the
// program's structure.
struct CommunicatorProperties {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int rank;
  int n_ranks;
  int cuda_device;
  int nvml_device;
  bool device_api;
  bool multimem;
  int gin_type;  // 0: none, like the members below
  int n_lsa_teams;
  bool host_rma;
  int railed_gin_type;
  uint64_t communicator_hash;
  int gin_min_stride;
  int gin_connection_type;
  bool gin[64];
  size_t device_communicator_size;
  bool cft[3];
};
static_assert(sizeof(CommunicatorProperties) == 152 &&
              offsetof(CommunicatorProperties, communicator_hash) == 56);

// The layout of ncclTeam in nccl_device/core.h.
struct Team {
  int n_ranks;
  int rank;
  int stride;
};

// No kernel can read another rank's memory in hostccl. So every rank is a load-store team by itself, and a
// rail contains all ranks. For an invalid communicator the team is empty.
Team TeamOf(ncclComm_t comm, bool everybody) {
  const auto communicator = CheckCommunicator(comm);
  if (!communicator) return {0, 0, 0};
  return everybody ? Team{(*communicator)->n_ranks(), (*communicator)->rank(), 1} : Team{1, 0, 1};
}

}  // namespace

#define HOSTCCL_TOPOLOGY_FUNCTION(result, name, parameters)                        \
  extern "C" __attribute__((visibility("default"))) result pnccl##name parameters; \
  extern "C" __attribute__((weak, alias("pnccl" #name), visibility("default"))) result nccl##name parameters;

HOSTCCL_TOPOLOGY_FUNCTION(ncclResult_t, CommQueryProperties, (ncclComm_t comm, void* properties))
HOSTCCL_TOPOLOGY_FUNCTION(Team, TeamWorld, (ncclComm_t comm))
HOSTCCL_TOPOLOGY_FUNCTION(Team, TeamLsa, (ncclComm_t comm))
HOSTCCL_TOPOLOGY_FUNCTION(Team, TeamCft, (ncclComm_t comm, int mode))
HOSTCCL_TOPOLOGY_FUNCTION(Team, TeamCftMultimem, (ncclComm_t comm))
HOSTCCL_TOPOLOGY_FUNCTION(Team, TeamRail, (ncclComm_t comm))
HOSTCCL_TOPOLOGY_FUNCTION(int, TeamRankToWorld, (ncclComm_t comm, Team team, int rank))
HOSTCCL_TOPOLOGY_FUNCTION(int, TeamRankToLsa, (ncclComm_t comm, Team team, int rank))

// Fills in as much of the structure as the program's version has. Members about GPUs stay 0.
ncclResult_t pncclCommQueryProperties(ncclComm_t comm, void* properties) {
  const auto communicator = CheckCommunicator(comm);
  if (!communicator) return Refuse(communicator.error());
  CommunicatorProperties answer{};
  if (properties != nullptr) std::memcpy(&answer, properties, offsetof(CommunicatorProperties, rank));
  if (answer.magic != NCCL_API_MAGIC) {
    return Refuse(Error{ErrorKind::kInvalidArgument,
                        "ncclCommQueryProperties: not initialised with NCCL_COMM_PROPERTIES_INITIALIZER",
                        {}});
  }
  answer.rank = (*communicator)->rank();
  answer.n_ranks = (*communicator)->n_ranks();
  answer.cuda_device = (*communicator)->device();
  answer.nvml_device = (*communicator)->device();
  answer.n_lsa_teams = (*communicator)->n_ranks();
  answer.communicator_hash = (*communicator)->info().id;
  answer.gin_min_stride = 1;
  std::memcpy(properties, &answer, std::min(answer.size, sizeof(answer)));
  return ncclSuccess;
}

Team pncclTeamWorld(ncclComm_t comm) {
  return TeamOf(comm, true);
}
Team pncclTeamLsa(ncclComm_t comm) {
  return TeamOf(comm, false);
}
Team pncclTeamCft(ncclComm_t comm, int) {
  return TeamOf(comm, false);
}
Team pncclTeamCftMultimem(ncclComm_t comm) {
  return TeamOf(comm, false);
}
Team pncclTeamRail(ncclComm_t comm) {
  return TeamOf(comm, true);
}

// Computes the rank as nccl_device.h does: the world ranks of a team's members are `stride` apart.
int pncclTeamRankToWorld(ncclComm_t comm, Team team, int rank) {
  const auto communicator = CheckCommunicator(comm);
  return communicator ? (*communicator)->rank() + (rank - team.rank) * team.stride : -1;
}

int pncclTeamRankToLsa(ncclComm_t comm, Team team, int rank) {
  return IsLive(comm) ? (rank - team.rank) * team.stride : -1;
}
