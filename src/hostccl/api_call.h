// SPDX-License-Identifier: Apache-2.0
// Validation of what programs hand to NCCL functions that move data.
#pragma once

#include <memory>

#include "src/base/status.h"
#include "src/hostccl/communicator_handle.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

// The arguments of a collective; those that a function does not have keep their defaults.
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

struct TransferArguments {
  bool sends = false;
  void* buffer = nullptr;  // read only when sending
  size_t count = 0;
  ncclDataType_t data_type = ncclInt8;
  int peer = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};

// Validate and issue; every failure is logged and noted for the group.
ncclResult_t CallCollective(const CollectiveArguments& arguments);
ncclResult_t CallTransfer(const TransferArguments& arguments);

// The collectives that NCCL runs as a group of Send and Recv.
enum class GroupedCollective { kAlltoAll, kGather, kScatter };
ncclResult_t CallGrouped(GroupedCollective grouped, const CollectiveArguments& arguments);

struct PreMulSumArguments {
  void* scalar = nullptr;
  ncclDataType_t data_type = ncclFloat;
  ncclScalarResidence_t residence = ncclScalarHostImmediate;
};
ncclResult_t CreatePreMulSum(ncclComm_t comm, const PreMulSumArguments& arguments, ncclRedOp_t* op);
ncclResult_t DestroyOperator(ncclComm_t comm, ncclRedOp_t op);

// Logs the error for ncclGetLastError and turns it into NCCL's number.
ncclResult_t Refuse(const Error& error);

}  // namespace dynamiccl::hostccl
