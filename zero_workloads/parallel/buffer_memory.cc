// SPDX-License-Identifier: Apache-2.0
// References to the library's functions for memory (ncclMemAlloc and others) are weak, so that the program
// also starts with a library that lacks them.
#include "zero_workloads/parallel/buffer_memory.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "zero_workloads/device/device.h"
#include "zero_workloads/memory/memory_counters.h"

#pragma weak ncclMemAlloc
#pragma weak ncclMemFree
#pragma weak ncclCommRegister
#pragma weak ncclCommDeregister
#pragma weak ncclCommWindowRegister
#pragma weak ncclCommWindowDeregister

namespace dynamiccl::zero {
namespace {

void Demand(ncclResult_t result, const char* function, int64_t bytes) {
  if (result == ncclSuccess) return;
  throw std::runtime_error(fmt::format("{} of {} bytes: {} ({})", function, bytes, ncclGetErrorString(result),
                                       ncclGetLastError(nullptr)));
}

void DemandFunctions(BufferMemory memory) {
  const bool window = memory == BufferMemory::kWindow;
  const bool has =
      ncclMemAlloc != nullptr && (window ? ncclCommWindowRegister != nullptr : ncclCommRegister != nullptr);
  if (has) return;
  throw std::runtime_error(
      fmt::format("this NCCL library has no {}, which came with NCCL {}: use a newer library, or leave out "
                  "--bucket-memory",
                  window ? "ncclCommWindowRegister" : "ncclMemAlloc", window ? "2.27" : "2.19"));
}

// Memory of ncclMemAlloc that is registered on one communicator. A tensor owns it.
class RegisteredMemory {
 public:
  RegisteredMemory(int64_t bytes, BufferMemory memory, ProcessGroup* group) : group_(group) {
    DemandFunctions(memory);
    Demand(ncclMemAlloc(&data_, static_cast<size_t>(bytes)), "ncclMemAlloc", bytes);
    BookAllocation(data_, bytes);
    try {
      Register(bytes, memory);
    } catch (...) {
      Free();
      throw;
    }
  }
  ~RegisteredMemory() {
    try {
      // On CUDA, collectives may still use the memory, so the destructor waits for them.
      FinishCompute();
    } catch (const std::exception&) {
      // The device has failed, and the run ends with its own error.
    }
    // An aborted communicator has forgotten its registrations.
    if (group_->communicator() != nullptr) {
      if (handle_ != nullptr) ncclCommDeregister(group_->communicator(), handle_);
      if (window_ != nullptr) ncclCommWindowDeregister(group_->communicator(), window_);
    }
    Free();
  }
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  void* data() const { return data_; }

 private:
  void Register(int64_t bytes, BufferMemory memory) {
    const auto size = static_cast<size_t>(bytes);
    if (memory == BufferMemory::kRegistered) {
      Demand(ncclCommRegister(group_->communicator(), data_, size, &handle_), "ncclCommRegister", bytes);
    } else {
      Demand(ncclCommWindowRegister(group_->communicator(), data_, size, &window_, NCCL_WIN_COLL_SYMMETRIC),
             "ncclCommWindowRegister", bytes);
    }
  }
  void Free() {
    BookFree(data_);
    ncclMemFree(data_);
  }

  ProcessGroup* group_;
  void* data_ = nullptr;
  void* handle_ = nullptr;
  ncclWindow_t window_ = nullptr;
};

}  // namespace

BufferMemory BufferMemoryOf(const std::string& word) {
  if (word == "ordinary") return BufferMemory::kOrdinary;
  if (word == "registered") return BufferMemory::kRegistered;
  if (word == "window") return BufferMemory::kWindow;
  throw std::logic_error("no memory for buffers is called " + word);
}

at::Tensor NewBuffer(int64_t elements, const at::TensorOptions& options, BufferMemory memory,
                     ProcessGroup* group) {
  if (memory == BufferMemory::kOrdinary) return at::empty({elements}, options);
  // ncclMemAlloc refuses 0 bytes.
  const int64_t bytes = std::max<int64_t>(1, elements) * static_cast<int64_t>(options.dtype().itemsize());
  auto owned = std::make_shared<RegisteredMemory>(bytes, memory, group);
  void* const data = owned->data();
  return at::from_blob(
      data, {elements}, [owned = std::move(owned)](void*) mutable { owned.reset(); }, options);
}

}  // namespace dynamiccl::zero
