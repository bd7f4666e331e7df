// SPDX-License-Identifier: Apache-2.0
// Buffers as nccl-tests' -R registers them: memory of ncclMemAlloc, registered with a communicator.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/bench/nccl_library.h"

namespace dynamiccl {

// nccl-tests' numbers.
enum class Registration { kNone = 0, kLocal = 1, kWindow = 2 };

// Owns buffers registered with one communicator, which must outlive it. All ranks allocate in the same order.
class RegisteredMemory {
 public:
  // Fails with kUnsupported when the library lacks what the registration needs.
  static Result<RegisteredMemory> Open(const NcclLibrary& library, ncclComm_t communicator, Registration how);
  RegisteredMemory(RegisteredMemory&& other) noexcept;
  ~RegisteredMemory();

  Result<std::byte*> Allocate(size_t bytes);

 private:
  struct Buffer {
    void* memory = nullptr;
    void* handle = nullptr;
  };
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
