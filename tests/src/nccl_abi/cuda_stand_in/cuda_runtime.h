// SPDX-License-Identifier: Apache-2.0
// Declares all that nccl.h uses of the CUDA runtime, so that it compiles without CUDA's headers.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
