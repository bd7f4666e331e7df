// SPDX-License-Identifier: Apache-2.0
// `dynamiccl doctor --compare-nccl`: what an upgrade of NCCL changes.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/launch/installation.h"

namespace dynamiccl {

// The options of the comparison.
struct CompareNcclOptions {
  // Names of at least two releases; each is compared with the next.
  std::vector<std::string> releases;
  // Machine of the data set; empty: all machines.
  std::string machine;
  // File of NCCL's choices; empty: the installation's.
  std::string choices;
  bool json = false;
  bool markdown = false;
};

// Prints the comparison; returns the command's exit code.
Result<int> CompareNccl(const Installation& installation, const CompareNcclOptions& options);

}  // namespace dynamiccl
