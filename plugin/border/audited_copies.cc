// SPDX-License-Identifier: Apache-2.0
// The entry for libdynamiccl-audit.so (plugin/audit), an audit library of the dynamic linker. A program that
// looks up NCCL's functions by address gets functions from this file, one set for each copy of NCCL. Each
// function notes which copy it belongs to and then does what the public function does.
#include <cstring>

#include "plugin/border/real_nccl.h"

namespace dynamiccl {
namespace {

// The functions that a program gets instead of those of NCCL's copy number `Copy`. Each sets copy_in_use for
// the duration of the call, so that everything below the public function forwards to that copy.
template <int Copy>
struct Entries {
#define ENTRY_Passed(result, name, parameters, arguments)
#define ENTRY_Named(result, name, parameters, arguments) \
  static result name parameters {                        \
    const CopyInUse copy(Copy);                          \
    return nccl##name arguments;                         \
  }
#define ENTRY_Moves ENTRY_Named
#define ENTRY_MovesFromInside ENTRY_Named
#define ENTRY_MovesAsConfigured ENTRY_Named
#define DYNAMICCL_ENTRY(since, door, result, name, parameters, arguments) \
  ENTRY_##door(result, name, parameters, arguments)
  DYNAMICCL_NCCL_FUNCTIONS(DYNAMICCL_ENTRY)
  DYNAMICCL_NCCL_FURTHER_FUNCTIONS(DYNAMICCL_ENTRY)
#undef DYNAMICCL_ENTRY
};

// One interposed function: its name, its number, and for each copy of NCCL the function that programs get.
struct Door {
  const char* symbol;
  RealFunction function;
  void* entries[kMaxNcclCopies];  // [0] is unused: copy 0 has the public functions
};

#define DOOR_Passed(name)
#define DOOR_Named(name)                                                                             \
  {"nccl" #name,                                                                                     \
   RealFunction::k##name,                                                                            \
   {nullptr, reinterpret_cast<void*>(&Entries<1>::name), reinterpret_cast<void*>(&Entries<2>::name), \
    reinterpret_cast<void*>(&Entries<3>::name)}},
#define DOOR_Moves DOOR_Named
#define DOOR_MovesFromInside DOOR_Named
#define DOOR_MovesAsConfigured DOOR_Named
#define DYNAMICCL_DOOR(since, door, result, name, parameters, arguments) DOOR_##door(name)

const Door kDoors[] = {DYNAMICCL_NCCL_FUNCTIONS(DYNAMICCL_DOOR)
                           DYNAMICCL_NCCL_FURTHER_FUNCTIONS(DYNAMICCL_DOOR)};

static_assert(kMaxNcclCopies == 4, "as many as there are columns, and as plugin/audit/audit.c has");

}  // namespace
}  // namespace dynamiccl

// The program looks up `symbol` in copy number `copy` of NCCL, where it is at `real`. Returns the function
// that the program gets instead, or null if it gets `real` itself. A null symbol means that the copy was
// unloaded. See audited_door in plugin/audit/audit.c. The dynamic linker holds its lock during this call, so
// nothing may be allocated or loaded.
extern "C" __attribute__((visibility("default"))) void* dynamicclAuditedDoor(int copy, const char* symbol,
                                                                             void* real) {
  using namespace dynamiccl;  // NOLINT(build/namespaces): a C function
  if (copy < 1 || copy >= kMaxNcclCopies) return nullptr;
  if (symbol == nullptr) {
    ForgetCopy(copy);
    return nullptr;
  }
  for (const Door& door : kDoors) {
    if (std::strcmp(door.symbol, symbol) != 0) continue;
    SetRealAddress(copy, door.function, real);
    return door.entries[copy];
  }
  return nullptr;
}
