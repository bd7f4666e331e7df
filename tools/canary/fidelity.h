// SPDX-License-Identifier: Apache-2.0
// Checks that the described machine behaves like the user's: compares the canary's run of the release in use
// with a log of the user's own job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/real_nccl/nccl_release.h"
#include "tools/canary/cell.h"

namespace dynamiccl {

// Holds what a log of NCCL_DEBUG=INFO tells about one communicator. A member is empty or 0 if the log does
// not tell it.
struct LoggedJob {
  std::optional<real_nccl::NcclRelease> release;
  int ranks = 0;
  int channels = 0;
  int nvls_channels = 0;
  std::map<std::string, int> transports;
  std::set<std::string> adapters;
};

// Reads the first communicator that the log reports. Needs NCCL_DEBUG_SUBSYS=INIT (the default) at least.
LoggedJob ReadNcclLog(const std::string& text);

// Returns one sentence for each difference between the canary's run (`cell`) and the user's log. Empty: they
// agree, so the machine is described well.
std::vector<std::string> Disagreements(const LoggedJob& logged, const Cell& cell);

}  // namespace dynamiccl
