// SPDX-License-Identifier: Apache-2.0
// Validation of what programs hand to NCCL functions, and the communicator handle.
#pragma once

#include <memory>

#include "src/base/status.h"
#include "src/hostccl/communicator.h"
#include "src/nccl_abi/nccl_api.h"

// What ncclComm_t points at. The magic tells a handle that was never made or was destroyed, as far as that
// can be told.
struct ncclComm {
  static constexpr uint64_t kMagic = 0x4d4d4f43'4c434348;  // "HCCLCOMM"

  uint64_t magic = kMagic;
  std::shared_ptr<dynamiccl::hostccl::Communicator> communicator;
};

namespace dynamiccl::hostccl {

Result<std::shared_ptr<Communicator>> CheckCommunicator(ncclComm_t handle);

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

// Logs the error for ncclGetLastError and turns it into NCCL's number.
ncclResult_t Refuse(const Error& error);

}  // namespace dynamiccl::hostccl
