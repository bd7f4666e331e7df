// SPDX-License-Identifier: Apache-2.0
// What a process holds of the system, sample by sample, and how fast that grows.
#pragma once

#include <sys/types.h>

#include <vector>

namespace dynamiccl::testing {

struct ProcessSample {
  double seconds = 0;     // since the process began
  double anon_kib = 0;    // private memory
  double shared_kib = 0;  // shared memory that it has touched
  int descriptors = 0;
  int shared_maps = 0;  // mappings of memfds
};

// All zero once the process is gone.
ProcessSample LookAt(pid_t process, double seconds);

// Least squares of private memory over time, of the second half of the samples: what is taken once at the
// start does not count. KiB a minute; 0 with fewer than eight samples.
double SlopeOf(const std::vector<ProcessSample>& samples);

}  // namespace dynamiccl::testing
