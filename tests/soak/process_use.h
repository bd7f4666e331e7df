// SPDX-License-Identifier: Apache-2.0
// Samples of the memory and descriptors that a process uses, and how fast its memory grows.
#pragma once

#include <sys/types.h>

#include <vector>

namespace dynamiccl::testing {

struct ProcessSample {
  double seconds = 0;     // since the process began
  double anon_kib = 0;    // private memory
  double shared_kib = 0;  // shared memory that the process has touched
  int descriptors = 0;
  int shared_maps = 0;  // mappings of memfds
};

// Returns a sample of the process. All its numbers are 0 if the process has ended.
ProcessSample LookAt(pid_t process, double seconds);

// Returns the growth of private memory in KiB per minute, by least squares over the second half of the
// samples. So memory that is allocated once at the start does not count. Returns 0 for fewer than eight
// samples.
double SlopeOf(const std::vector<ProcessSample>& samples);

}  // namespace dynamiccl::testing
