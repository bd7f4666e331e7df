// SPDX-License-Identifier: Apache-2.0
// Counts and describes kernel launches. No kernel runs, because there is no GPU.
#pragma once

#include <cstdint>
#include <span>

#include "tests/real_nccl/cuda_standin/elf_symbols.h"

namespace cuda_standin {

struct Launch {
  // For example "ncclDevKernel_AllReduce_Sum_f32_RING_LL"; "unknown" for an address without a known name.
  const char* kernel = "";
  unsigned grid = 0;   // number of blocks; NCCL launches one for each channel
  unsigned block = 0;  // threads in each block
};

// The number of launches of one thread, and its last launch.
struct ThreadLaunches {
  uint64_t count = 0;
  Launch last;
};

// Stores the names of the kernels among `functions`, which are those of the library at `address`. Call this
// function once, before any launch: the names are read without a lock.
void NameKernels(uintptr_t address, std::span<const FunctionSymbol> functions);

// Returns the handle of a kernel that the program itself defines. Equal names give equal handles.
const void* NameOwnKernel(const char* name);

void CountLaunch(const void* kernel, unsigned grid, unsigned block);
uint64_t LaunchCount();
const ThreadLaunches& LaunchesOfThisThread();

}  // namespace cuda_standin
