// SPDX-License-Identifier: Apache-2.0
// How PyTorch's profiler, execution traces and flight recorder name collectives, element types and process
// groups (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/data_type.h"

namespace dynamiccl {

// "allreduce", "nccl:all_reduce", "_allgather_base", "nccl:send 0->1" ...; nullopt for what moves no data
// ("wait", "init", "coalesced"), for other backends ("gloo:all_reduce") and for unknown names.
std::optional<Collective> CollectiveOfPyTorch(std::string_view name);

// c10::ScalarType ("BFloat16") and the C++ spellings of older releases ("c10::Half", "long int").
std::optional<DataType> DataTypeOfPyTorch(std::string_view name);

// An id for a process group, equal on all ranks of the job: they all know its name and members.
uint64_t IdOfProcessGroup(std::string_view name, const std::vector<int64_t>& ranks);

}  // namespace dynamiccl
