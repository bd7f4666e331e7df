// SPDX-License-Identifier: Apache-2.0
// Allocates buffers with ncclMemAlloc and registers them with a communicator, like nccl-tests' option -R.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/bench/nccl_library.h"

namespace dynamiccl {

// Says how buffers are registered, with the numbers of nccl-tests' option -R: not at all, by
// ncclCommRegister, or as a symmetric window.
enum class Registration { kNone = 0, kLocal = 1, kWindow = 2 };

// Owns buffers registered with one communicator, which must outlive this object. All ranks must allocate in
// the same order, because registering a window is collective.
class RegisteredMemory {
 public:
  // Looks up the functions that the kind of registration needs. The error is kUnsupported when the library
  // lacks one.
  static Result<RegisteredMemory> Open(const NcclLibrary& library, ncclComm_t communicator, Registration how);
  RegisteredMemory(RegisteredMemory&& other) noexcept;
  ~RegisteredMemory();

  Result<std::byte*> Allocate(size_t bytes);

 private:
  struct Buffer {
    void* memory = nullptr;
    void* handle = nullptr;
  };
  // NCCL's functions for the chosen registration. If buffers become symmetric windows, `enlist_window` is
  // set, else `enlist`.
  struct Functions {
    ncclResult_t (*alloc)(void**, size_t) = nullptr;
    ncclResult_t (*free)(void*) = nullptr;
    ncclResult_t (*enlist)(ncclComm_t, void*, size_t, void**) = nullptr;
    ncclResult_t (*enlist_window)(ncclComm_t, void*, size_t, void**, int) = nullptr;
    ncclResult_t (*strike)(ncclComm_t, void*) = nullptr;
  };

  RegisteredMemory(const NcclLibrary& library, ncclComm_t communicator)
      : library_(&library), communicator_(communicator) {}

  const NcclLibrary* library_;
  ncclComm_t communicator_;
  Functions functions_;
  std::vector<Buffer> buffers_;
};

}  // namespace dynamiccl
