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
// Makes `device` of emulated node `node` the calling thread's place. Ranks of one process call it before any
// NCCL call.
CUDA_STANDIN_WEAK void cuda_standin_set_place(int node, int device);
// A buffer that NCCL takes for device memory; null when memory is out. Freed by cuda_standin_free.
CUDA_STANDIN_WEAK void* cuda_standin_allocate(size_t bytes);
CUDA_STANDIN_WEAK void cuda_standin_free(void* buffer);
// Kernels that NCCL launched so far. None of them ran.
CUDA_STANDIN_WEAK uint64_t cuda_standin_launches(void);

#ifdef __cplusplus
}
#endif
