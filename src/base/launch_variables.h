// SPDX-License-Identifier: Apache-2.0
// Environment variables in which launchers tell a process its place in the job: torchrun, then Open MPI, then
// Slurm. Readers take the first variable of a list that is set.
#pragma once

namespace dynamiccl {

inline constexpr const char* kRankVariables[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"};
inline constexpr const char* kWorldVariables[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"};
inline constexpr const char* kLocalWorldVariables[] = {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                                       "SLURM_NTASKS_PER_NODE"};

}  // namespace dynamiccl
