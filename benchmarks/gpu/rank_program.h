// SPDX-License-Identifier: Apache-2.0
// Options of rank_program, and the one call that differs between NCCL releases.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <string>

namespace first_hour {

struct Options {
  std::string id_file;
  int ranks = 0;
  int first = -1;  // first rank of this process
  int here = 1;    // ranks of this process, as threads
  size_t bytes = 0;
  int iterations = 20;
  bool graph = false;
  std::string selection;  // NCCL's algSelection of each call; empty leaves the choice to NCCL
};

// False for an unknown or incomplete command line.
bool ParseOptions(int count, char** words, Options* options);

struct AllReduceCall {
  const float* send = nullptr;
  float* receive = nullptr;
  size_t count = 0;
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
};

// all_reduce_plain.cc for NCCL up to 2.30, where a selection is ncclInvalidUsage; all_reduce_config.cc
// from 2.31 on.
ncclResult_t AllReduce(const AllReduceCall& call, const std::string& selection);

}  // namespace first_hour
