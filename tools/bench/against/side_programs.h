// SPDX-License-Identifier: Apache-2.0
// The programs that a comparison runs: our own ranks, and those of Open MPI, Intel MPI and Gloo, built where
// that is needed.
#pragma once

#include <string>
#include <vector>

#include "tools/bench/against/side.h"
#include "tools/launch/installation.h"

namespace dynamiccl {

struct SideSettings {
  Installation installation;
  int n_ranks = 2;
  bool bind = true;  // each rank to a core of its own, where there are as many
  std::string python;
};

// "openmpi", "impi", "gloo".
bool IsPeerName(const std::string& name);

// Builds what is missing into ~/.cache/dynamiccl/peers. kUnavailable with the command that brings the library
// as the hint when it is not on this machine.
Result<SideProgram> FindPeer(const std::string& name, const SideSettings& settings);

// "core" where ranks are to be bound, "none" else.
std::string BindingWord(const SideSettings& settings);

}  // namespace dynamiccl
