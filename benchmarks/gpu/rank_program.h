// SPDX-License-Identifier: Apache-2.0
// Options of rank_program, and the only call that differs between NCCL releases.
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
  // Number of this process's first rank.
  int first = -1;
  // Number of ranks in this process. They are threads.
  int here = 1;
  size_t bytes = 0;
  int iterations = 20;
  bool graph = false;
  // NCCL's algSelection for each call. If empty, NCCL chooses.
  std::string selection;
};

// Returns false for an unknown or incomplete command line.
bool ParseOptions(int count, char** words, Options* options);

// Arguments of one call. The caller owns all buffers.
struct AllReduceCall {
  const float* send = nullptr;
  float* receive = nullptr;
  size_t count = 0;
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
};

// Makes one call. all_reduce_plain.cc defines it for NCCL up to 2.30, where a selection gives
// ncclInvalidUsage; all_reduce_config.cc defines it from 2.31 on.
ncclResult_t AllReduce(const AllReduceCall& call, const std::string& selection);

}  // namespace first_hour
