// SPDX-License-Identifier: Apache-2.0
// Streams, events and buffers for machines without CUDA: the few CUDA runtime functions that a program around
// NCCL needs, in hostccl's libnccl.so.2 and on host memory. A stream is an ordered queue with its own worker
// thread; its handle is passed to NCCL functions as cudaStream_t. The null stream is a process-wide stream of
// its own. Every function returns ncclSuccess, or ncclInvalidArgument for a null or unknown handle.
#pragma once

#include "src/nccl_abi/nccl_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hostcclEvent* hostcclEvent_t;

ncclResult_t hostcclStreamCreate(cudaStream_t* stream);
// Waits for the work in the stream, then frees it.
ncclResult_t hostcclStreamDestroy(cudaStream_t stream);
// Blocks until all work issued so far is done; the first error of that work is returned once.
ncclResult_t hostcclStreamSynchronize(cudaStream_t stream);
// ncclSuccess when idle, ncclInProgress otherwise.
ncclResult_t hostcclStreamQuery(cudaStream_t stream);
// Runs function(data) in stream order on the stream's thread.
ncclResult_t hostcclLaunchHostFunc(cudaStream_t stream, void (*function)(void*), void* data);

ncclResult_t hostcclEventCreate(hostcclEvent_t* event);
ncclResult_t hostcclEventDestroy(hostcclEvent_t event);
// Captures all work issued to the stream so far; recording again replaces what was captured.
ncclResult_t hostcclEventRecord(hostcclEvent_t event, cudaStream_t stream);
ncclResult_t hostcclEventSynchronize(hostcclEvent_t event);
ncclResult_t hostcclEventQuery(hostcclEvent_t event);
// Later work of `stream` waits for the event's latest record; an event never recorded is complete.
ncclResult_t hostcclStreamWaitEvent(cudaStream_t stream, hostcclEvent_t event);
// Nanoseconds of CLOCK_MONOTONIC at which the recorded work was done. ncclInProgress until then.
ncclResult_t hostcclEventTime(hostcclEvent_t event, int64_t* nanoseconds);

#ifdef __cplusplus
}
#endif
