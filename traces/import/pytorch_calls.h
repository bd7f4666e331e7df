// SPDX-License-Identifier: Apache-2.0
// The names that PyTorch's profiler, execution traces and flight recorder give to collectives, element types
// and process groups. The backend "nccl" is torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp. The backend
// "nccl2", the default of PyTorch since August 2026, is nccl2/ProcessGroupNCCL.cpp beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/data_type.h"

namespace dynamiccl {

// Returns whether the name begins with a backend that calls NCCL: "nccl:" or "nccl2:".
bool IsOfNcclBackend(std::string_view name);

// Returns whether the flight recorder's hook recorded the call: "c10d:all_reduce", whatever the backend.
// PyTorch attaches the hook to groups whose backend does not record by itself, such as "nccl2".
// "c10d::allreduce_" is an operator of PyTorch.
bool IsOfRecorderHook(std::string_view name);

// The collective of "allreduce", "nccl:all_reduce", "nccl2:_all_gather_base", "c10d:send 0->1" and so on.
// Nothing for names that move no data ("wait", "init", "coalesced"), for other backends ("gloo:all_reduce")
// and for unknown names.
std::optional<Collective> CollectiveOfPyTorch(std::string_view name);

// The type of a c10::ScalarType ("BFloat16") or of the C++ spellings of older releases ("c10::Half", "long
// int").
std::optional<DataType> DataTypeOfPyTorch(std::string_view name);

// An id for a process group. It is equal on all ranks of the job, because all of them know its name and
// members.
uint64_t IdOfProcessGroup(std::string_view name, const std::vector<int64_t>& ranks);

}  // namespace dynamiccl
