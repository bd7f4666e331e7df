// SPDX-License-Identifier: Apache-2.0
// The Python module dynamiccl_torch._backend, which creates a HostBackend for torch.distributed.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "zero_workloads/torch_backend/host_backend.h"

namespace {

using dynamiccl::torch_backend::HostBackend;

c10::intrusive_ptr<HostBackend> Create(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                       std::chrono::milliseconds timeout, const std::string& group_name,
                                       const std::vector<uint64_t>& global_ranks) {
  return c10::make_intrusive<HostBackend>(
      store, HostBackend::Membership{rank, size, group_name, global_ranks, timeout});
}

}  // namespace

PYBIND11_MODULE(_backend, module) {
  py::module_::import("torch._C._distributed_c10d");  // registers the base class
  py::class_<HostBackend, c10d::Backend, c10::intrusive_ptr<HostBackend>>(module, "HostBackend");
  module.def("create", &Create, py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"),
             py::arg("group_name"), py::arg("global_ranks"), py::call_guard<py::gil_scoped_release>());
}
