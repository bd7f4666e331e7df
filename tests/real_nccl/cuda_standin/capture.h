// SPDX-License-Identifier: Apache-2.0
// Stream capture is a state of a thread. The graph keeps no nodes, because the stand-in cannot replay it. The
// graph lives until the capture ends.
#pragma once

namespace cuda_standin {

// Starts or ends the capture of all streams of the calling thread. The end destroys the graph and the user
// objects that the graph retained.
void SetCapturing(bool on);
bool Capturing();

}  // namespace cuda_standin
