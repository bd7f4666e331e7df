// SPDX-License-Identifier: Apache-2.0
// What `dynamiccl doctor --compare-nccl` says.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/launch/installation.h"

namespace dynamiccl {

struct CompareNcclOptions {
  std::vector<std::string> releases;  // each is compared with the next
  std::string machine;                // of the data set; empty: all
  std::string choices;                // file of NCCL's choices; empty: the installation's
  bool json = false;
  bool markdown = false;
};

Result<int> CompareNccl(const Installation& installation, const CompareNcclOptions& options);

}  // namespace dynamiccl
