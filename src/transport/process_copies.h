// SPDX-License-Identifier: Apache-2.0
// Finds out, on all ranks alike, whether the ranks of a communicator may copy to and from each other's
// private memory with process_vm_readv and process_vm_writev.
#pragma once

#include "src/base/status.h"
#include "src/transport/peer_mesh.h"

namespace dynamiccl {

// Collective: every rank tries to read one word of every other process of its host. Returns true on all ranks
// if `wanted` is true on all ranks and no attempt was refused. Systems refuse because of ptrace_scope,
// seccomp, containers or different process-id namespaces.
Result<bool> AgreeOnProcessCopies(PeerMesh& mesh, bool wanted, Deadline deadline);

}  // namespace dynamiccl
