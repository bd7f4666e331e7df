// SPDX-License-Identifier: Apache-2.0
// Options of rank_program, and the one call that differs between NCCL releases.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <string>

namespace first_hour {

// The command line.
struct Options {
  std::string id_file;
  int ranks = 0;
  // First rank of this process.
  int first = -1;
  // Ranks of this process, as threads.
  int here = 1;
  size_t bytes = 0;
  int iterations = 20;
  bool graph = false;
  // NCCL's algSelection of each call; empty leaves the choice to NCCL.
  std::string selection;
};

// False for an unknown or incomplete command line.
bool ParseOptions(int count, char** words, Options* options);

// Arguments of one call; all buffers belong to the caller.
struct AllReduceCall {
  const float* send = nullptr;
  float* receive = nullptr;
  size_t count = 0;
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
};

// In all_reduce_plain.cc for NCCL up to 2.30, where a selection is ncclInvalidUsage; in all_reduce_config.cc
// from 2.31 on.
ncclResult_t AllReduce(const AllReduceCall& call, const std::string& selection);

}  // namespace first_hour
