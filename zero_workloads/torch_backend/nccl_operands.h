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

// A tensor's memory in the form of an NCCL call's arguments. It is valid as long as the tensor exists.
struct NcclElements {
  void* data = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclUint8;
};

// The type's name in Python, for example "float32".
std::string TypeName(const at::Tensor& tensor);
// The operands of a call that only moves data. A type that NCCL lacks is sent as bytes.
NcclElements MovedElements(const at::Tensor& tensor);
// The operands of a call that computes. Throws ValueError for a type that NCCL lacks. A bool is sent as a
// byte of 0 or 1, on which SUM and MAX mean "or", PRODUCT and MIN mean "and". `operation` is for messages.
NcclElements ReducedElements(const char* operation, const at::Tensor& tensor);

// NCCL's operator for a call on tensors of one type. A pre-multiplied sum belongs to one communicator and is
// destroyed with this object. The constructor throws ValueError for an operator that NCCL lacks.
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
  // True if NCCL created the operator, so that it must be destroyed.
  bool made_ = false;
};

// Throws ValueError unless the tensor lies in CPU memory without gaps, so that NCCL can move it in its
// present layout. Calls whose result has the shape of the input need no more than this check. The strides
// must be equal on all ranks.
void CheckDense(const char* operation, const at::Tensor& tensor);
// Throws ValueError unless the tensor lies in CPU memory, without gaps and in row-major order. Calls that
// split or join tensors need this.
void CheckContiguous(const char* operation, const at::Tensor& tensor);
// Checks each tensor with the function above. Throws TypeError unless all tensors have the type of `like`.
void CheckContiguous(const char* operation, const std::vector<at::Tensor>& tensors, const at::Tensor& like);
// Returns the only tensor of the list. The list forms of torch.distributed take one tensor for each process;
// another number of tensors throws ValueError.
const at::Tensor& OnlyTensor(const char* operation, const std::vector<at::Tensor>& tensors);

}  // namespace dynamiccl::torch_backend
