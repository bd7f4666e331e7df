// SPDX-License-Identifier: Apache-2.0
// Redirects CUDA functions of this process to the stand-in before main runs. It patches the private copy of
// the CUDA runtime inside NCCL's library. It also patches the program's own copy where the program links the
// CUDA runtime statically. The program must be linked with NCCL, or NCCL must be preloaded.
#include <link.h>

#include <cctype>
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/real_nccl/cuda_standin/capture.h"
#include "tests/real_nccl/cuda_standin/code_patch.h"
#include "tests/real_nccl/cuda_standin/cuda_standin.h"
#include "tests/real_nccl/cuda_standin/device_use.h"
#include "tests/real_nccl/cuda_standin/elf_symbols.h"
#include "tests/real_nccl/cuda_standin/function_table.h"
#include "tests/real_nccl/cuda_standin/launch.h"
#include "tests/real_nccl/cuda_standin/machine.h"
#include "tests/real_nccl/cuda_standin/memory.h"
#include "tests/real_nccl/cuda_standin/nccl_hooks.h"
#include "tests/real_nccl/cuda_standin/place.h"

namespace cuda_standin {
namespace {

struct LoadedLibrary {
  std::string path;
  uintptr_t address = 0;
};

int KeepNccl(dl_phdr_info* info, size_t, void* out) {
  if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, "libnccl.so") == nullptr) return 0;
  *static_cast<LoadedLibrary*>(out) = {info->dlpi_name, info->dlpi_addr};
  return 1;
}

// dl_iterate_phdr visits the program before its libraries.
int KeepProgram(dl_phdr_info* info, size_t, void* out) {
  *static_cast<uintptr_t*>(out) = info->dlpi_addr;
  return 1;
}

bool IsRuntimeFunction(const std::string& name) {
  return name.size() > 4 && name.starts_with("cuda") &&
         std::isupper(static_cast<unsigned char>(name[4])) != 0;
}

// Returns the replacement of a function. Null means that the function keeps its own code.
const void* ReplacementFor(const std::string& name) {
  if (!IsRuntimeFunction(name)) return FindNcclHook(name);
  if (const void* ours = FindRuntimeFunction(name)) return ours;
  // The copy of the name is never freed, because the stub prints it.
  return MakeMissingFunction(strdup(name.c_str()));
}

// Redirects the CUDA runtime that a program links statically. Does nothing when the program's symbols cannot
// be read.
void RedirectRuntimeOfProgram() {
  uintptr_t program_address = 0;
  dl_iterate_phdr(KeepProgram, &program_address);
  std::string error;
  const auto functions = ReadFunctionSymbols("/proc/self/exe", &error);
  if (!functions) return;
  for (const FunctionSymbol& function : *functions) {
    if (!IsRuntimeFunction(function.name)) continue;
    auto* const address = reinterpret_cast<void*>(program_address + function.offset);
    if (!RedirectFunction(address, ReplacementFor(function.name)))
      std::fprintf(stderr, "cuda_standin: cannot write to the program's %s\n", function.name.c_str());
  }
}

// Returns the number of redirected functions. Returns -1 with a message on stderr when the library cannot be
// read or patched.
int Redirect(const LoadedLibrary& library) {
  std::string error;
  const auto functions = ReadFunctionSymbols(library.path, &error);
  if (!functions) {
    std::fprintf(stderr, "cuda_standin: %s\n", error.c_str());
    return -1;
  }
  NameKernels(library.address, *functions);
  int redirected = 0;
  for (const FunctionSymbol& function : *functions) {
    const void* replacement = ReplacementFor(function.name);
    if (replacement == nullptr) continue;
    if (!RedirectFunction(reinterpret_cast<void*>(library.address + function.offset), replacement)) {
      std::fprintf(stderr, "cuda_standin: cannot write to %s\n", function.name.c_str());
      return -1;
    }
    ++redirected;
  }
  return redirected;
}

int redirected_functions = 0;

__attribute__((constructor)) void Attach() {
  LoadedLibrary library;
  if (dl_iterate_phdr(KeepNccl, &library) == 1) redirected_functions = Redirect(library);
  RedirectRuntimeOfProgram();
}

}  // namespace
}  // namespace cuda_standin

extern "C" {

int cuda_standin_redirected(void) {
  return cuda_standin::redirected_functions;
}

int cuda_standin_devices(void) {
  return static_cast<int>(cuda_standin::ThisMachine().gpu_buses.size());
}

void cuda_standin_set_place(int node, int device) {
  cuda_standin::ThisPlace() = {device, node};
}

void* cuda_standin_allocate(size_t bytes) {
  return cuda_standin::AllocateMemory(bytes, cuda_standin::MemoryKind::kDevice);
}

void cuda_standin_free(void* buffer) {
  cuda_standin::FreeMemory(buffer);
}

uint64_t cuda_standin_device_memory(void) {
  return cuda_standin::MostDeviceMemory(cuda_standin::ThisPlace());
}

uint64_t cuda_standin_launches(void) {
  return cuda_standin::LaunchCount();
}

uint64_t cuda_standin_thread_launches(cuda_standin_launch* last) {
  const cuda_standin::ThreadLaunches& launches = cuda_standin::LaunchesOfThisThread();
  if (last != nullptr) *last = {launches.last.kernel, launches.last.grid, launches.last.block};
  return launches.count;
}

uint64_t cuda_standin_missing_calls(void) {
  return cuda_standin::MissingFunctionCalls();
}

void cuda_standin_capture(int on) {
  cuda_standin::SetCapturing(on != 0);
}

}  // extern "C"
