// SPDX-License-Identifier: Apache-2.0
// The place of a thread: its current device, and the emulated node that it belongs to.
#pragma once

namespace cuda_standin {

struct Place {
  int device = 0;
  int node = 0;
};

// Returns the place of the calling thread. A new thread starts at the place of the thread that created it.
inline Place& ThisPlace() {
  static thread_local Place place;
  return place;
}

}  // namespace cuda_standin
