// SPDX-License-Identifier: Apache-2.0
// Registers buffers with functions that only newer releases of NCCL have.
#include "tools/bench/registered_memory.h"

#include <utility>

namespace dynamiccl {
namespace {

// NCCL_WIN_COLL_SYMMETRIC of nccl.h.
constexpr int kSymmetricWindow = 0x01;

template <typename Function>
Status Resolve(const NcclLibrary& library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(library.Symbol(name));
  if (function != nullptr) return {};
  return WithHint(MakeError(ErrorKind::kUnsupported, "-R: {} has no {}", library.Description(), name),
                  "use -R 0, or a newer library: -R 1 needs 2.19, -R 2 needs 2.27");
}

}  // namespace

Result<RegisteredMemory> RegisteredMemory::Open(const NcclLibrary& library, ncclComm_t communicator,
                                                Registration how) {
  RegisteredMemory memory(library, communicator);
  Functions& functions = memory.functions_;
  const bool window = how == Registration::kWindow;
  DYNAMICCL_CHECK_OK(Resolve(library, "ncclMemAlloc", functions.alloc));
  DYNAMICCL_CHECK_OK(Resolve(library, "ncclMemFree", functions.free));
  if (window) {
    DYNAMICCL_CHECK_OK(Resolve(library, "ncclCommWindowRegister", functions.enlist_window));
    DYNAMICCL_CHECK_OK(Resolve(library, "ncclCommWindowDeregister", functions.strike));
  } else {
    DYNAMICCL_CHECK_OK(Resolve(library, "ncclCommRegister", functions.enlist));
    DYNAMICCL_CHECK_OK(Resolve(library, "ncclCommDeregister", functions.strike));
  }
  return memory;
}

RegisteredMemory::RegisteredMemory(RegisteredMemory&& other) noexcept
    : library_(other.library_),
      communicator_(other.communicator_),
      functions_(other.functions_),
      buffers_(std::exchange(other.buffers_, {})) {}

RegisteredMemory::~RegisteredMemory() {
  for (const Buffer& buffer : buffers_) {
    if (buffer.handle != nullptr) functions_.strike(communicator_, buffer.handle);
    functions_.free(buffer.memory);
  }
}

Result<std::byte*> RegisteredMemory::Allocate(size_t bytes) {
  const size_t wanted = bytes == 0 ? 1 : bytes;
  Buffer buffer;
  DYNAMICCL_CHECK_OK(
      library_->Check(functions_.alloc(&buffer.memory, wanted), "ncclMemAlloc", communicator_));
  buffers_.push_back(buffer);
  void** const handle = &buffers_.back().handle;
  const bool window = functions_.enlist_window != nullptr;
  const ncclResult_t result =
      window ? functions_.enlist_window(communicator_, buffer.memory, wanted, handle, kSymmetricWindow)
             : functions_.enlist(communicator_, buffer.memory, wanted, handle);
  DYNAMICCL_CHECK_OK(
      library_->Check(result, window ? "ncclCommWindowRegister" : "ncclCommRegister", communicator_));
  return static_cast<std::byte*>(buffer.memory);
}

}  // namespace dynamiccl
