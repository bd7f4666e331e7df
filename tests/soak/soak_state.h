// SPDX-License-Identifier: Apache-2.0
// What a rank of the soak job has done. The rank maps the file, and the driver reads it.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace dynamiccl::testing {

struct SoakState {
  std::atomic<uint64_t> calls;       // checked calls of all processes of this rank
  std::atomic<uint64_t> generation;  // of the present communicator, from 1

  // Returns the mapped file. A new file is all zeros. The mapping is never removed.
  static SoakState* Open(const std::string& folder, int rank) {
    const std::string path = folder + "/state." + std::to_string(rank);
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ::ftruncate(fd, sizeof(SoakState)) != 0) std::abort();
    void* const data = ::mmap(nullptr, sizeof(SoakState), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (data == MAP_FAILED) std::abort();
    return static_cast<SoakState*>(data);
  }
};

}  // namespace dynamiccl::testing
