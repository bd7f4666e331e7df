// SPDX-License-Identifier: Apache-2.0
// How the ranks of this folder's small NCCL jobs exchange the unique id, and how each of them ends on an
// error.
#pragma once

#include <errno.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "src/nccl_abi/nccl_api.h"

// Ends the process with exit code 4, without destructors: another rank may be inside a call.
[[noreturn]] inline void Fail(const char* what, int code) {
  std::fprintf(stderr, "%s: %s: %d\n", ::program_invocation_short_name, what, code);
  std::_Exit(4);
}

inline void Check(ncclResult_t result, const char* what) {
  if (result != ncclSuccess) Fail(what, result);
}
#define CHECK_NCCL(call) Check(call, #call)

// Rank 0 makes the id and publishes it under its final name; the others wait for it.
inline ncclUniqueId UniqueIdByFile(const std::string& path, int rank) {
  ncclUniqueId id{};
  if (rank == 0) {
    CHECK_NCCL(ncclGetUniqueId(&id));
    std::ofstream(path + ".new", std::ios::binary).write(id.internal, sizeof(id.internal));
    std::rename((path + ".new").c_str(), path.c_str());
    return id;
  }
  while (true) {
    std::ifstream file(path, std::ios::binary);
    if (file.read(id.internal, sizeof(id.internal))) return id;
    ::usleep(2000);
  }
}
