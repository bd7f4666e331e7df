// SPDX-License-Identifier: Apache-2.0
// Streams and events for machines without CUDA: the few functions of the CUDA runtime that a program around
// NCCL needs. hostccl's libnccl.so.2 exports them; they work on host memory.
//
// A stream is an ordered queue with a worker thread of its own; its handle is passed to NCCL functions as
// cudaStream_t. The null stream is one process-wide stream. Every function may be called from any thread.
// Each returns ncclSuccess, or ncclInvalidArgument for a null or unknown handle, unless its comment says
// more.
#pragma once

#include "src/nccl_abi/nccl_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hostcclEvent* hostcclEvent_t;

// Makes a stream; free it with hostcclStreamDestroy.
ncclResult_t hostcclStreamCreate(cudaStream_t* stream);
// Waits for the work in the stream and frees it.
ncclResult_t hostcclStreamDestroy(cudaStream_t stream);
// Blocks until all work issued so far is done. The first error of that work is returned, once.
ncclResult_t hostcclStreamSynchronize(cudaStream_t stream);
// Returns ncclSuccess if the stream is idle, else ncclInProgress.
ncclResult_t hostcclStreamQuery(cudaStream_t stream);
// Runs function(data) in stream order on the stream's thread.
ncclResult_t hostcclLaunchHostFunc(cudaStream_t stream, void (*function)(void*), void* data);

// Makes an event; free it with hostcclEventDestroy. An event that was never recorded counts as complete.
ncclResult_t hostcclEventCreate(hostcclEvent_t* event);
ncclResult_t hostcclEventDestroy(hostcclEvent_t event);
// Captures all work that was issued to the stream so far. Recording again replaces the captured work.
ncclResult_t hostcclEventRecord(hostcclEvent_t event, cudaStream_t stream);
// Blocks until the captured work is done. Returns the stream's first error up to that point that no
// hostcclStreamSynchronize has returned yet; the stream keeps the error.
ncclResult_t hostcclEventSynchronize(hostcclEvent_t event);
// Returns ncclSuccess if the captured work is done, else ncclInProgress.
ncclResult_t hostcclEventQuery(hostcclEvent_t event);
// Makes later work of `stream` wait for the event's latest record. The caller itself does not wait.
ncclResult_t hostcclStreamWaitEvent(cudaStream_t stream, hostcclEvent_t event);
// Stores the time at which the captured work was done, in nanoseconds of CLOCK_MONOTONIC. Returns
// ncclInProgress before that, and ncclInvalidArgument for an event that was never recorded.
ncclResult_t hostcclEventTime(hostcclEvent_t event, int64_t* nanoseconds);

#ifdef __cplusplus
}
#endif
