// SPDX-License-Identifier: Apache-2.0
// A table of launchers is searched in order: the first launcher that set a rank or a world size is used.
#include "zero_workloads/parallel/rank_environment.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace dynamiccl::zero {
namespace {

// A launcher's name, and its variables for rank, world size and local rank.
struct Launcher {
  const char* name;
  const char* rank;
  const char* world;
  const char* local_rank;
};

// Each launcher's variables, in the order in which launchers are tried.
constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"pmi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
};

// torchrun's default for MASTER_PORT.
constexpr int kDefaultPort = 29500;

Result<int> ReadNumber(const char* name, int low, int high) {
  const char* text = std::getenv(name);
  if (text == nullptr) return MakeError(ErrorKind::kInvalidArgument, "{} is not set", name);
  int value = 0;
  const auto [end, failure] = std::from_chars(text, text + std::strlen(text), value);
  if (failure != std::errc() || *end != '\0' || value < low || value > high) {
    return MakeError(ErrorKind::kInvalidArgument, "{}=\"{}\" is not a number from {} to {}", name, text, low,
                     high);
  }
  return value;
}

Status ReadRendezvous(RankEnvironment* environment) {
  const char* address = std::getenv("MASTER_ADDR");
  if (address == nullptr || *address == '\0') {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "MASTER_ADDR is not set, and the world size is {}",
                  environment->world),
        "set MASTER_ADDR and MASTER_PORT to where rank 0 runs, or start with `dynamiccl run` or torchrun");
  }
  environment->address = address;
  environment->port = kDefaultPort;
  if (std::getenv("MASTER_PORT") != nullptr) {
    DYNAMICCL_TRY(environment->port, ReadNumber("MASTER_PORT", 1, 65534));
  }
  // If this variable is set, torchrun's agent itself listens at MASTER_PORT, so this program uses the next
  // port.
  const char* agent_store = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  if (agent_store != nullptr && std::strcmp(agent_store, "True") == 0) ++environment->port;
  return {};
}

}  // namespace

Result<RankEnvironment> ReadRankEnvironment() {
  RankEnvironment environment;
  for (const Launcher& launcher : kLaunchers) {
    if (std::getenv(launcher.rank) == nullptr && std::getenv(launcher.world) == nullptr) continue;
    environment.launcher = launcher.name;
    // 2^20 ranks are more than any cluster has, and few enough that products of ranks and bytes do not
    // overflow.
    DYNAMICCL_TRY(environment.world, ReadNumber(launcher.world, 1, 1 << 20));
    DYNAMICCL_TRY(environment.rank, ReadNumber(launcher.rank, 0, environment.world - 1));
    if (std::getenv(launcher.local_rank) != nullptr) {
      DYNAMICCL_TRY(environment.local_rank, ReadNumber(launcher.local_rank, 0, environment.world - 1));
    }
    if (environment.world > 1) DYNAMICCL_CHECK_OK(ReadRendezvous(&environment));
    break;
  }
  return environment;
}

}  // namespace dynamiccl::zero
