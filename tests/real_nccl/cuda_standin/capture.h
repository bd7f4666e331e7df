// SPDX-License-Identifier: Apache-2.0
// Stream capture: a state of the thread. The graph keeps no nodes, since nothing could be replayed; it lives
// until the capture ends.
#pragma once

namespace cuda_standin {

// Of the calling thread, for all its streams. An end destroys the graph: objects that it retained go.
void SetCapturing(bool on);
bool Capturing();

}  // namespace cuda_standin
