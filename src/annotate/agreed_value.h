// SPDX-License-Identifier: Apache-2.0
// Live values: numbers that a program reads at the start of a step and that somebody may change while it
// runs, on all ranks before the same step (docs/agree.md). The header needs no library: its symbols are weak,
// so without DynamICCL a read costs one compare and returns the program's own value.
//
//   const int64_t bucket = dynamiccl::agree::Value("bucket_mb", 25);   // every rank, at the start of a step
//   if (rank == 3 && slow) dynamiccl::agree::Propose("bucket_mb", 5);  // any rank, any time
#pragma once

#include <stdint.h>

struct ncclComm;

#ifdef __cplusplus
extern "C" {
#endif

// Stores the value that the name has at the communicator's next call and returns 1, or stores `fallback` and
// returns 0 if the ranks have agreed on no value. Never fails. All ranks of the communicator must call this
// at the same place among its calls, with the same fallback; then all get the same number. `comm` NULL: the
// process's first communicator of all WORLD_SIZE ranks. `name`: 1 to 31 letters, digits, '.', '-' and '_'. If
// a change is being agreed on, this waits as the next call would.
__attribute__((weak)) int dynamicclAgreedValue(struct ncclComm* comm, const char* name, int64_t fallback,
                                               int64_t* value);
// Proposes a value to all ranks and returns at once; any rank, any thread. The value holds from some later
// call on. Of several proposals for one name the last one counts. Returns 1 if the proposal was sent. Returns
// 0 if values do not change: outside mode adaptive, or on a communicator that is non-blocking or whose ranks
// do not agree.
__attribute__((weak)) int dynamicclProposeValue(struct ncclComm* comm, const char* name, int64_t value);

#ifdef __cplusplus
}

namespace dynamiccl::agree {

// Calls dynamicclAgreedValue for C++ programs. Returns `fallback` if DynamICCL is not loaded.
inline int64_t Value(const char* name, int64_t fallback, ncclComm* comm = nullptr) {
  int64_t value = fallback;
  if (dynamicclAgreedValue != nullptr) dynamicclAgreedValue(comm, name, fallback, &value);
  return value;
}

inline bool Propose(const char* name, int64_t value, ncclComm* comm = nullptr) {
  return dynamicclProposeValue != nullptr && dynamicclProposeValue(comm, name, value) != 0;
}

}  // namespace dynamiccl::agree
#endif
