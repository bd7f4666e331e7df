// SPDX-License-Identifier: Apache-2.0
// Functions that a test program may call when the stand-in is preloaded. The references are weak: without the
// stand-in the functions are null.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_STANDIN_WEAK __attribute__((weak, visibility("default")))

// Returns how many functions of NCCL are redirected. Returns 0 when no libnccl.so is loaded or its symbols
// are stripped. Returns a negative number when the library cannot be read or patched.
CUDA_STANDIN_WEAK int cuda_standin_redirected(void);
// Returns the number of devices of one node.
CUDA_STANDIN_WEAK int cuda_standin_devices(void);
// Puts the calling thread on `device` of the emulated node `node`. Each rank that is a thread calls this
// function before any NCCL call.
CUDA_STANDIN_WEAK void cuda_standin_set_place(int node, int device);
// Returns a buffer that NCCL accepts as device memory, or null when no memory is left. The caller frees the
// buffer with cuda_standin_free.
CUDA_STANDIN_WEAK void* cuda_standin_allocate(size_t bytes);
CUDA_STANDIN_WEAK void cuda_standin_free(void* buffer);
// Returns the largest number of bytes of device memory that NCCL has held at once on the calling thread's
// device.
CUDA_STANDIN_WEAK uint64_t cuda_standin_device_memory(void);
// Returns the number of kernels that the process has launched. No kernel runs.
CUDA_STANDIN_WEAK uint64_t cuda_standin_launches(void);

typedef struct {
  const char* kernel;  // name of the kernel; lives as long as the process
  unsigned grid;       // number of blocks; NCCL launches one for each channel
  unsigned block;      // threads in each block
} cuda_standin_launch;
// Returns the number of kernels that the calling thread has launched. If `last` is not null, it receives the
// thread's last launch. Without any launch, the kernel name is empty and the sizes are 0.
CUDA_STANDIN_WEAK uint64_t cuda_standin_thread_launches(cuda_standin_launch* last);

// Returns how often the process called CUDA functions that have no stand-in. Each such call printed the
// function's name on stderr and failed.
CUDA_STANDIN_WEAK uint64_t cuda_standin_missing_calls(void);

// Starts the capture of the calling thread's streams when `on` is not 0, and ends it when `on` is 0. The
// captured graph keeps nothing.
CUDA_STANDIN_WEAK void cuda_standin_capture(int on);

#ifdef __cplusplus
}
#endif
