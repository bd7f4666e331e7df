// SPDX-License-Identifier: Apache-2.0
// Whether the ranks of a communicator may copy from and to each other's private memory with
// process_vm_readv and process_vm_writev.
#pragma once

#include "src/base/status.h"
#include "src/transport/peer_mesh.h"

namespace dynamiccl {

// Collective: every rank reads one word of every other process of its host. True on all ranks if `wanted` on
// all and nothing was refused: ptrace_scope, seccomp, containers and other process-id name spaces refuse.
Result<bool> AgreeOnProcessCopies(PeerMesh& mesh, bool wanted, Deadline deadline);

}  // namespace dynamiccl
