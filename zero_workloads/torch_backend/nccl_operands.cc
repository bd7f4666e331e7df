// SPDX-License-Identifier: Apache-2.0
// Tables that map types and operators of torch to those of NCCL. Error messages name the operation and what
// to use instead.
#include "zero_workloads/torch_backend/nccl_operands.h"

#include <ATen/ops/scalar_tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <optional>

namespace dynamiccl::torch_backend {
namespace {

std::optional<ncclDataType_t> NcclType(at::ScalarType type) {
  switch (type) {
    case at::kBool:
    case at::kByte:
      return ncclUint8;
    case at::kChar:
      return ncclInt8;
    case at::kInt:
      return ncclInt32;
    case at::kUInt32:
      return ncclUint32;
    case at::kLong:
      return ncclInt64;
    case at::kUInt64:
      return ncclUint64;
    case at::kHalf:
      return ncclFloat16;
    case at::kFloat:
      return ncclFloat32;
    case at::kDouble:
      return ncclFloat64;
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kFloat8_e4m3fn:
      return ncclFloat8e4m3;
    case at::kFloat8_e5m2:
      return ncclFloat8e5m2;
    default:
      return std::nullopt;
  }
}

ncclRedOp_t OnBooleans(const char* operation, c10d::ReduceOp::RedOpType op) {
  switch (op) {
    case c10d::ReduceOp::SUM:
    case c10d::ReduceOp::MAX:
      return ncclMax;
    case c10d::ReduceOp::PRODUCT:
    case c10d::ReduceOp::MIN:
      return ncclMin;
    default:
      TORCH_CHECK_VALUE(false, operation, ": bool tensors take SUM, MAX, PRODUCT and MIN only");
  }
}

ncclRedOp_t OnNumbers(const char* operation, c10d::ReduceOp::RedOpType op) {
  switch (op) {
    case c10d::ReduceOp::SUM:
      return ncclSum;
    case c10d::ReduceOp::AVG:
      return ncclAvg;
    case c10d::ReduceOp::PRODUCT:
      return ncclProd;
    case c10d::ReduceOp::MIN:
      return ncclMin;
    case c10d::ReduceOp::MAX:
      return ncclMax;
    case c10d::ReduceOp::BAND:
    case c10d::ReduceOp::BOR:
    case c10d::ReduceOp::BXOR:
      TORCH_CHECK_VALUE(false, operation,
                        ": NCCL has no bitwise operators; gather the tensors and combine them, or use gloo");
    default:
      TORCH_CHECK_VALUE(false, operation, ": unknown operator ", static_cast<int>(op));
  }
}

}  // namespace

std::string TypeName(const at::Tensor& tensor) {
  return std::string(c10::getDtypeNames(tensor.scalar_type()).first);
}

NcclElements MovedElements(const at::Tensor& tensor) {
  const auto type = NcclType(tensor.scalar_type());
  return {tensor.data_ptr(), type ? static_cast<size_t>(tensor.numel()) : tensor.nbytes(),
          type.value_or(ncclUint8)};
}

NcclElements ReducedElements(const char* operation, const at::Tensor& tensor) {
  const auto type = NcclType(tensor.scalar_type());
  TORCH_CHECK_VALUE(type.has_value(), operation, ": NCCL does not compute with ", TypeName(tensor),
                    "; convert the tensor first");
  return {tensor.data_ptr(), static_cast<size_t>(tensor.numel()), *type};
}

ReduceOperator::ReduceOperator(const char* operation, const c10d::ReduceOp& op, const at::Tensor& tensor,
                               ncclComm_t communicator)
    : communicator_(communicator) {
  if (tensor.scalar_type() == at::kBool) {
    op_ = OnBooleans(operation, op);
  } else if (op == c10d::ReduceOp::PREMUL_SUM) {
    TORCH_CHECK_VALUE(at::isFloatingType(tensor.scalar_type()), operation,
                      ": PREMUL_SUM takes floating point tensors, got ", TypeName(tensor));
    MakePreMultipliedSum(op, tensor);
  } else {
    op_ = OnNumbers(operation, op);
  }
}

void ReduceOperator::MakePreMultipliedSum(const c10d::ReduceOp& op, const at::Tensor& tensor) {
  const auto* supplement = static_cast<const c10d::PreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK_VALUE(supplement != nullptr, "PREMUL_SUM needs a factor");
  const at::Tensor given = supplement->tensor_factor;
  const at::Tensor factor =
      (given.defined() ? given : at::scalar_tensor(supplement->double_factor, at::kDouble))
          .to(at::kCPU, tensor.scalar_type());
  const ncclResult_t result = ncclRedOpCreatePreMulSum(
      &op_, factor.data_ptr(), *NcclType(tensor.scalar_type()), ncclScalarHostImmediate, communicator_);
  TORCH_CHECK_WITH(DistBackendError, result == ncclSuccess,
                   "ncclRedOpCreatePreMulSum: ", ncclGetLastError(communicator_));
  made_ = true;
}

ReduceOperator::~ReduceOperator() {
  if (made_) ncclRedOpDestroy(op_, communicator_);
}

void CheckDense(const char* operation, const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.defined(), operation, ": a tensor is missing");
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, operation, ": sparse tensors are not supported");
  TORCH_CHECK_VALUE(tensor.device().is_cpu(), operation, ": this backend moves CPU tensors, got one on ",
                    tensor.device(), "; name it for the CPU only, as in \"cpu:dynamiccl,cuda:nccl\"");
  TORCH_CHECK_VALUE(tensor.is_non_overlapping_and_dense(), operation, ": a tensor of shape ", tensor.sizes(),
                    " and strides ", tensor.strides(), " is not dense in memory; call .contiguous() first");
}

void CheckContiguous(const char* operation, const at::Tensor& tensor) {
  CheckDense(operation, tensor);
  TORCH_CHECK_VALUE(tensor.is_contiguous(), operation, ": a tensor of shape ", tensor.sizes(),
                    " and strides ", tensor.strides(), " is not contiguous; call .contiguous() first");
}

void CheckContiguous(const char* operation, const std::vector<at::Tensor>& tensors, const at::Tensor& like) {
  for (const at::Tensor& tensor : tensors) {
    CheckContiguous(operation, tensor);
    TORCH_CHECK_TYPE(tensor.scalar_type() == like.scalar_type(), operation, ": tensors of different types, ",
                     TypeName(like), " and ", TypeName(tensor));
  }
}

const at::Tensor& OnlyTensor(const char* operation, const std::vector<at::Tensor>& tensors) {
  TORCH_CHECK_VALUE(tensors.size() == 1, operation, ": takes one tensor a process, got ", tensors.size());
  return tensors[0];
}

}  // namespace dynamiccl::torch_backend
