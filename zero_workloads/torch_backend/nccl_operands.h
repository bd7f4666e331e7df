// SPDX-License-Identifier: Apache-2.0
// Tensors and operators of torch.distributed as NCCL takes them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::torch_backend {

struct NcclElements {
  void* data = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclUint8;
};

// "float32", as Python says it.
std::string TypeName(const at::Tensor& tensor);
// For calls that only move data: a type that NCCL lacks travels as bytes.
NcclElements MovedElements(const at::Tensor& tensor);
// For calls that compute: ValueError for a type or operator that NCCL lacks. bool is a byte of 0 or 1, on
// which SUM and MAX are "or", PRODUCT and MIN are "and". `operation` is for messages.
NcclElements ReducedElements(const char* operation, const at::Tensor& tensor);

// NCCL's operator for a call on tensors of one type; a pre-multiplied sum is made for one communicator.
class ReduceOperator {
 public:
  ReduceOperator(const char* operation, const c10d::ReduceOp& op, const at::Tensor& tensor,
                 ncclComm_t communicator);
  ~ReduceOperator();
  ReduceOperator(const ReduceOperator&) = delete;
  ReduceOperator& operator=(const ReduceOperator&) = delete;
  ncclRedOp_t get() const { return op_; }

 private:
  void MakePreMultipliedSum(const c10d::ReduceOp& op, const at::Tensor& tensor);

  ncclRedOp_t op_ = ncclSum;
  ncclComm_t communicator_;
  bool made_ = false;
};

// CPU memory without gaps, which NCCL moves as it lies: for calls whose result has the shape of the input.
// Strides are to be equal on all ranks. ValueError otherwise.
void CheckDense(const char* operation, const at::Tensor& tensor);
// Row-major besides: for calls that cut or join tensors.
void CheckContiguous(const char* operation, const at::Tensor& tensor);
// Contiguous, and all of the type of `like` (TypeError otherwise).
void CheckContiguous(const char* operation, const std::vector<at::Tensor>& tensors, const at::Tensor& like);
// The list forms of torch.distributed take one tensor a process. ValueError otherwise.
const at::Tensor& OnlyTensor(const char* operation, const std::vector<at::Tensor>& tensors);

}  // namespace dynamiccl::torch_backend
