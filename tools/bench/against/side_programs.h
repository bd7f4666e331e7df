// SPDX-License-Identifier: Apache-2.0
// Knows how to start the libraries that a comparison times: hostccl, Open MPI, MPICH, Intel MPI and Gloo.
// Missing programs are built first.
#pragma once

#include <string>
#include <vector>

#include "tools/bench/against/side.h"
#include "tools/launch/installation.h"

namespace dynamiccl {

// Settings that are equal for all libraries of a comparison.
struct SideSettings {
  Installation installation;
  int n_ranks = 2;
  // True: bind each rank to a core of its own, if there are at least as many cores as ranks.
  bool bind = true;
  // Python interpreter whose PyTorch has Gloo.
  std::string python;
};

// True if `name` is "openmpi", "mpich", "impi" or "gloo".
bool IsPeerName(const std::string& name);

// Finds the program of another library and builds missing parts into ~/.cache/dynamiccl/peers. The error is
// kUnavailable when the library is not installed on this machine; its hint has the command that installs it.
Result<SideProgram> FindPeer(const std::string& name, const SideSettings& settings);

// "core" if the settings ask for ranks to be bound to cores, else "none".
std::string BindingWord(const SideSettings& settings);

}  // namespace dynamiccl
