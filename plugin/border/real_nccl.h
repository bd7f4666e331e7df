// SPDX-License-Identifier: Apache-2.0
// Finds the functions of the real NCCL, to which the interposed functions forward. Each is searched for at
// its first use. A process may hold several copies of NCCL. Copy 0 is the one that a program reaches by name.
// The others are known by the addresses that programs looked up themselves (audited_copies.cc).
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

// The parts of RealAddress: the addresses found so far, the copy for this thread's call, and the search for
// an address that is not known yet.
extern std::atomic<void*> real_addresses[kMaxNcclCopies][kRealFunctions];
extern constinit thread_local int copy_in_use;
void* FindRealAddress(RealFunction function) noexcept;

// Returns the function's name without "nccl": "AllReduce".
const char* NameOf(RealFunction function);

// Returns the function's address in the copy that is in use on this thread. Null if no NCCL in this process
// has the function; the next call searches again, because NCCL may be loaded later. For copy 0 the search
// covers the objects behind this one in the global scope, then a privately loaded libnccl (Python extensions,
// ctypes), then DYNAMICCL_NCCL_LIBRARY. An object that was found stays loaded. Any thread; one atomic load
// once the function is known.
inline void* RealAddress(RealFunction function) noexcept {
  void* const known =
      real_addresses[copy_in_use][static_cast<size_t>(function)].load(std::memory_order_acquire);
  return known != nullptr ? known : FindRealAddress(function);
}

// Returns the address of a function that hostccl has beside NCCL's; null if the process does not run over
// hostccl. Finds it too where a Python extension loaded hostccl for itself alone (RTLD_LOCAL). Any thread.
void* FindHostcclFunction(const char* name) noexcept;
// Returns true if the process runs over hostccl, NCCL's interface over host memory. Any thread.
bool RunsOverHostccl() noexcept;

// Returns the address of `function` in the shared object that contains the code address `caller`; null if
// that object does not define the function. NCCL calls some of its functions by their public names. This
// function lets a privately loaded copy of NCCL go on calling its own functions and not those of another
// copy.
void* RealAddressInside(const void* caller, RealFunction function) noexcept;

// SetRealAddress notes that a program has looked up `address` in one of the copies 1 to kMaxNcclCopies - 1.
// The other functions of that copy are found from there. ForgetCopy notes that the copy was unloaded. Both
// allocate and load nothing, because the dynamic linker calls them with its lock held.
void SetRealAddress(int copy, RealFunction function, void* address) noexcept;
void ForgetCopy(int copy) noexcept;

// Sets which copy of NCCL this thread's interposed call uses, for the lifetime of the object.
class CopyInUse {
 public:
  explicit CopyInUse(int copy);
  ~CopyInUse();
  CopyInUse(const CopyInUse&) = delete;
  CopyInUse& operator=(const CopyInUse&) = delete;

 private:
  const int before_;
};

// Calls the real function of type `Function`; returns ncclInvalidUsage if there is none.
template <typename Function, typename... Arguments>
ncclResult_t Forward(RealFunction function, Arguments... arguments) {
  const auto real = reinterpret_cast<Function>(RealAddress(function));
  return real == nullptr ? ncclInvalidUsage : real(arguments...);
}

// Returns NCCL_VERSION_CODE of this thread's copy, for example 22809 for 2.28.9; 0 if no NCCL answers.
int NcclVersion();
// Returns for example "2.28.9", or "unknown".
std::string NcclVersionName();

}  // namespace dynamiccl

#define DYNAMICCL_FORWARD(name, ...) \
  ::dynamiccl::Forward<decltype(&nccl##name)>(::dynamiccl::RealFunction::k##name __VA_OPT__(, ) __VA_ARGS__)
