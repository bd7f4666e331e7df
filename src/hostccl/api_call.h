// SPDX-License-Identifier: Apache-2.0
// Checks the arguments of the NCCL functions that move data, and issues the calls. The C functions
// (nccl_api_collectives.cc) only collect their arguments and call one function of this file.
//
// The path of a call through hostccl:
//   ncclAllReduce      nccl_api_collectives.cc  collects the arguments
//   CallCollective     api_call.cc              validates them
//   Issue              group.cc                 waits for the end of the group
//   LaunchGroup        group_plan.cc            merges calls, asks the planner (planner.cc)
//   Dispatch           dispatch.cc              runs inline, or enqueues on a stream (host_stream.cc)
//   Launch::Run        launch.cc                polls the lanes of all channels (channel_lane.cc)
//   RingAllReduce      algorithms/              moves chunks by primitives (primitives.h)
//   SimplePrimitives   protocols/               moves slots or lines through FIFOs (src/transport)
// A repeated small call goes directly from CallCollective to RunCached (carried_call.cc).
#pragma once

#include <memory>

#include "src/base/status.h"
#include "src/hostccl/communicator_handle.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

// The arguments of a collective as the program passed them. Members for which the called function has no
// argument keep their defaults.
struct CollectiveArguments {
  Collective collective = Collective::kAllReduce;
  const void* send = nullptr;
  void* recv = nullptr;
  size_t count = 0;
  ncclDataType_t data_type = ncclInt8;
  ncclRedOp_t op = ncclSum;
  int root = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  const ncclCollConfig_t* config = nullptr;
};

// The arguments of ncclSend or ncclRecv.
struct TransferArguments {
  bool sends = false;
  void* buffer = nullptr;  // only read when sending
  size_t count = 0;
  ncclDataType_t data_type = ncclInt8;
  int peer = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};

// Validates a call, and issues it as part of the thread's open group or on its own. A failure is logged as
// NCCL WARN and makes the open group fail.
ncclResult_t CallCollective(const CollectiveArguments& arguments);
ncclResult_t CallTransfer(const TransferArguments& arguments);

// The collectives that NCCL implements as a group of Send and Recv.
enum class GroupedCollective { kAlltoAll, kGather, kScatter };
// Validates and issues a call as CallCollective does, for one of these three collectives.
ncclResult_t CallGrouped(GroupedCollective grouped, const CollectiveArguments& arguments);

// The arguments of ncclRedOpCreatePreMulSum.
struct PreMulSumArguments {
  void* scalar = nullptr;
  ncclDataType_t data_type = ncclFloat;
  ncclScalarResidence_t residence = ncclScalarHostImmediate;
};
// Makes an operator that multiplies each rank's input by a factor before the sum. A factor in host memory is
// read now, a factor in device memory when a collective runs.
ncclResult_t CreatePreMulSum(ncclComm_t comm, const PreMulSumArguments& arguments, ncclRedOp_t* op);
// Removes an operator. Calls that were already issued with the operator keep its factor.
ncclResult_t DestroyOperator(ncclComm_t comm, ncclRedOp_t op);

// Reports a failed call: logs the error, keeps its text for ncclGetLastError, and makes the open group fail.
// Returns the error's ncclResult_t.
ncclResult_t Refuse(const Error& error);

}  // namespace dynamiccl::hostccl
