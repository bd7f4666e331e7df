// SPDX-License-Identifier: Apache-2.0
// Writes the machine code of the redirections. A redirection is "mov rax, address; jmp rax". The stub of a
// missing function first loads the function's name into rdi, the first argument.
#include "tests/real_nccl/cuda_standin/code_patch.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace cuda_standin {
namespace {

constexpr size_t kJumpBytes = 12;
constexpr size_t kStubBytes = 32;          // mov rdi, name (10 bytes) and the jump (12 bytes), rounded up
constexpr size_t kStubArenaBytes = 65536;  // room for 2048 stubs; the CUDA runtime has about 450 functions
constexpr int kErrorNotSupported = 801;

std::atomic<uint64_t> missing_calls{0};

int ReportMissing(const char* name) {
  missing_calls.fetch_add(1);
  std::fprintf(stderr, "cuda_standin: %s has no stand-in\n", name);
  return kErrorNotSupported;
}

void WriteMoveRegister(uint8_t* code, uint8_t register_byte, const void* value) {
  code[0] = 0x48;
  code[1] = register_byte;
  std::memcpy(code + 2, &value, sizeof value);
}

void WriteJump(uint8_t* code, const void* target) {
  constexpr uint8_t kRax = 0xb8;
  WriteMoveRegister(code, kRax, target);
  code[10] = 0xff;
  code[11] = 0xe0;
}

// Returns pages that are writable and executable at once, because stubs are added while other threads run
// older ones. Null when the pages cannot be mapped.
uint8_t* StubArena() {
  static uint8_t* arena = [] {
    void* pages = mmap(nullptr, kStubArenaBytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? nullptr : static_cast<uint8_t*>(pages);
  }();
  return arena;
}

}  // namespace

bool RedirectFunction(void* function, const void* replacement) {
  const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(function);
  const uintptr_t first = address / page_bytes * page_bytes;
  const size_t bytes = (address + kJumpBytes - 1) / page_bytes * page_bytes + page_bytes - first;
  auto* pages = reinterpret_cast<void*>(first);
  if (mprotect(pages, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
  WriteJump(static_cast<uint8_t*>(function), replacement);
  return mprotect(pages, bytes, PROT_READ | PROT_EXEC) == 0;
}

void* MakeMissingFunction(const char* name) {
  static std::mutex mutex;
  static size_t used = 0;
  const std::lock_guard<std::mutex> lock(mutex);
  uint8_t* arena = StubArena();
  if (arena == nullptr || used + kStubBytes > kStubArenaBytes) return nullptr;
  constexpr uint8_t kRdi = 0xbf;
  uint8_t* code = arena + used;
  used += kStubBytes;
  WriteMoveRegister(code, kRdi, name);
  WriteJump(code + 10, reinterpret_cast<const void*>(&ReportMissing));
  return code;
}

uint64_t MissingFunctionCalls() {
  return missing_calls.load();
}

}  // namespace cuda_standin
