// SPDX-License-Identifier: Apache-2.0
// Where the calling thread stands: which device is current, and which emulated node it belongs to.
#pragma once

namespace cuda_standin {

struct Place {
  int device = 0;
  int node = 0;
};

// Of the calling thread: at first that of the thread which started it.
Place& ThisPlace();

}  // namespace cuda_standin
