// SPDX-License-Identifier: Apache-2.0
// Where the real NCCL is: finds the functions that the interposed ones forward to, each at its first use. A
// process may hold several copies of NCCL. Copy 0 is the one that a program reaches by name; the others are
// known by the addresses under which programs found them themselves (audited_copies.cc).
#pragma once

#include <atomic>
#include <string>

#include "src/nccl_abi/nccl_function_table.h"

namespace dynamiccl {

enum class RealFunction {
#define DYNAMICCL_REAL_FUNCTION(since, door, result, name, parameters, arguments) k##name,
  DYNAMICCL_NCCL_FUNCTIONS(DYNAMICCL_REAL_FUNCTION) DYNAMICCL_NCCL_FURTHER_FUNCTIONS(DYNAMICCL_REAL_FUNCTION)
#undef DYNAMICCL_REAL_FUNCTION
      kCount
};

inline constexpr int kRealFunctions = static_cast<int>(RealFunction::kCount);
inline constexpr int kMaxNcclCopies = 4;

// The parts of RealAddress: what was found so far, which copy this thread's call is about, and the search for
// what was not found yet.
extern std::atomic<void*> real_addresses[kMaxNcclCopies][kRealFunctions];
extern constinit thread_local int copy_in_use;
void* FindRealAddress(RealFunction function) noexcept;

// The function's name without "nccl": "AllReduce".
const char* NameOf(RealFunction function);

// The function's address in the copy that is in use on this thread. Null when no NCCL in this process has the
// function; that is asked again at the next call, since NCCL may be loaded later. For copy 0 it looks behind
// this object in the global scope, then into a libnccl that was loaded privately (Python extensions, ctypes),
// then at DYNAMICCL_NCCL_LIBRARY. What was found once stays loaded. Any thread; one atomic load once the
// function is known.
inline void* RealAddress(RealFunction function) noexcept {
  void* const known =
      real_addresses[copy_in_use][static_cast<size_t>(function)].load(std::memory_order_acquire);
  return known != nullptr ? known : FindRealAddress(function);
}

// For a function that NCCL calls by its public name: the function of the object in which `caller`, an address
// of code, lies, so that a copy of NCCL that a program loaded privately goes on calling itself. Null when
// that object has no such function.
void* RealAddressInside(const void* caller, RealFunction function) noexcept;

// A program has found `address` in one of the copies 1 to kMaxNcclCopies - 1; what else is needed of that
// copy is found from there. ForgetCopy: it was unloaded. Both allocate nothing and load nothing, since the
// dynamic linker calls them with its lock held.
void SetRealAddress(int copy, RealFunction function, void* address) noexcept;
void ForgetCopy(int copy) noexcept;

// Which copy this thread's interposed call is about, for the lifetime of the object.
class CopyInUse {
 public:
  explicit CopyInUse(int copy);
  ~CopyInUse();
  CopyInUse(const CopyInUse&) = delete;
  CopyInUse& operator=(const CopyInUse&) = delete;

 private:
  const int before_;
};

// Calls the real function of type `Function`; ncclInvalidUsage when there is none.
template <typename Function, typename... Arguments>
ncclResult_t Forward(RealFunction function, Arguments... arguments) {
  const auto real = reinterpret_cast<Function>(RealAddress(function));
  return real == nullptr ? ncclInvalidUsage : real(arguments...);
}

// NCCL_VERSION_CODE of this thread's copy, 22809 for 2.28.9; 0 when there is no NCCL that says.
int NcclVersion();
// "2.28.9", or "unknown".
std::string NcclVersionName();

}  // namespace dynamiccl

#define DYNAMICCL_FORWARD(name, ...) \
  ::dynamiccl::Forward<decltype(&nccl##name)>(::dynamiccl::RealFunction::k##name __VA_OPT__(, ) __VA_ARGS__)
