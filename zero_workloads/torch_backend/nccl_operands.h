// SPDX-License-Identifier: Apache-2.0
// Translates tensors and operators of torch.distributed into those of NCCL, and rejects what NCCL does not
// support.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::torch_backend {

// A tensor's memory in the form of an NCCL call's arguments; valid as long as the tensor.
struct NcclElements {
  void* data = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclUint8;
};

// The type's name in Python, for example "float32".
std::string TypeName(const at::Tensor& tensor);
// For calls that only move data: a type that NCCL lacks is sent as bytes.
NcclElements MovedElements(const at::Tensor& tensor);
// For calls that compute: ValueError for a type that NCCL lacks. bool is a byte of 0 or 1, on which SUM and
// MAX mean "or", PRODUCT and MIN mean "and". `operation` is for messages.
NcclElements ReducedElements(const char* operation, const at::Tensor& tensor);

// NCCL's operator for a call on tensors of one type. A pre-multiplied sum is created for one communicator,
// and destroyed with the object. The constructor throws ValueError for an operator that NCCL lacks.
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
  // The operator was created by NCCL and must be destroyed.
  bool made_ = false;
};

// Throws ValueError unless the tensor is CPU memory without gaps, which NCCL can move in its present layout.
// This suffices for calls whose result has the shape of the input; strides must be equal on all ranks.
void CheckDense(const char* operation, const at::Tensor& tensor);
// Throws ValueError unless the tensor is also row-major: for calls that split or join tensors.
void CheckContiguous(const char* operation, const at::Tensor& tensor);
// Checks each tensor as above. Throws TypeError unless all have the type of `like`.
void CheckContiguous(const char* operation, const std::vector<at::Tensor>& tensors, const at::Tensor& like);
// The list forms of torch.distributed take one tensor for each process; another number throws ValueError.
const at::Tensor& OnlyTensor(const char* operation, const std::vector<at::Tensor>& tensors);

}  // namespace dynamiccl::torch_backend
