// SPDX-License-Identifier: Apache-2.0
// The programs that a comparison runs: hostccl's ranks, and those of Open MPI, MPICH, Intel MPI and Gloo,
// which are built where needed.
#pragma once

#include <string>
#include <vector>

#include "tools/bench/against/side.h"
#include "tools/launch/installation.h"

namespace dynamiccl {

// Settings that all sides of a comparison share.
struct SideSettings {
  Installation installation;
  int n_ranks = 2;
  // Bind each rank to a core of its own, where there are as many cores as ranks.
  bool bind = true;
  // Python interpreter whose PyTorch has Gloo.
  std::string python;
};

// Whether `name` is "openmpi", "mpich", "impi" or "gloo".
bool IsPeerName(const std::string& name);

// Finds the program of another library and builds missing parts into ~/.cache/dynamiccl/peers. kUnavailable
// when the library is not installed on this machine; the hint has the command that installs it.
Result<SideProgram> FindPeer(const std::string& name, const SideSettings& settings);

// "core" where ranks are to be bound, else "none".
std::string BindingWord(const SideSettings& settings);

}  // namespace dynamiccl
