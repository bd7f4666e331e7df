// SPDX-License-Identifier: Apache-2.0
// What a test program may ask of the preloaded stand-in. The functions are weak: without the stand-in they
// are null.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_STANDIN_WEAK __attribute__((weak, visibility("default")))

// Functions redirected in NCCL: 0 when no libnccl.so is loaded or it is stripped, negative when it cannot be
// patched.
CUDA_STANDIN_WEAK int cuda_standin_redirected(void);
// Devices of one node.
CUDA_STANDIN_WEAK int cuda_standin_devices(void);
// Makes `device` of emulated node `node` the calling thread's place. Ranks of one process call it before any
// NCCL call.
CUDA_STANDIN_WEAK void cuda_standin_set_place(int node, int device);
// A buffer that NCCL takes for device memory; null when memory is out. Freed by cuda_standin_free.
CUDA_STANDIN_WEAK void* cuda_standin_allocate(size_t bytes);
CUDA_STANDIN_WEAK void cuda_standin_free(void* buffer);
// The most bytes of device memory that NCCL held at once on the calling thread's device so far.
CUDA_STANDIN_WEAK uint64_t cuda_standin_device_memory(void);
// Kernels that NCCL launched so far. None of them ran.
CUDA_STANDIN_WEAK uint64_t cuda_standin_launches(void);

typedef struct {
  const char* kernel;  // name of the host function; lives as long as the process
  unsigned grid;       // blocks: one a channel
  unsigned block;      // threads of a block
} cuda_standin_launch;
// Launches by the calling thread so far; `last`, if not null, is filled where there was one.
CUDA_STANDIN_WEAK uint64_t cuda_standin_thread_launches(cuda_standin_launch* last);

// Calls of CUDA functions that have no stand-in. Each printed its name to stderr and failed.
CUDA_STANDIN_WEAK uint64_t cuda_standin_missing_calls(void);

// From now on the calling thread's streams are (not) being captured into a graph, which keeps nothing.
CUDA_STANDIN_WEAK void cuda_standin_capture(int on);

#ifdef __cplusplus
}
#endif
