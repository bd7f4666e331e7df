// SPDX-License-Identifier: Apache-2.0
// Kernel launches: counted, described and dropped, since there is nothing to run them on.
#pragma once

#include <cstdint>
#include <span>

#include "tests/real_nccl/cuda_standin/elf_symbols.h"

namespace cuda_standin {

struct Launch {
  const char* kernel =
      "";              // "ncclDevKernel_AllReduce_Sum_f32_RING_LL"; "unknown" for a function without a name
  unsigned grid = 0;   // blocks: one a channel
  unsigned block = 0;  // threads of a block
};

// The launches of one thread so far, and its last one.
struct ThreadLaunches {
  uint64_t count = 0;
  Launch last;
};

// Called once, before any launch: the functions of the library loaded at `address`.
void NameKernels(uintptr_t address, std::span<const FunctionSymbol> functions);

// The address that stands for a kernel of the program's own, the same for the same name.
const void* NameOwnKernel(const char* name);

void CountLaunch(const void* kernel, unsigned grid, unsigned block);
uint64_t LaunchCount();
const ThreadLaunches& LaunchesOfThisThread();

}  // namespace cuda_standin
