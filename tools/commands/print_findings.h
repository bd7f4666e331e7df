// SPDX-License-Identifier: Apache-2.0
// Prints the findings of `doctor` and `config` as a table with colours, or as JSON.
#pragma once

#include <vector>

#include "tools/doctor/check.h"

namespace dynamiccl {

// Prints to standard output. Returns the exit code: 1 when a finding is FAIL, else 0.
int PrintFindings(const std::vector<Finding>& findings, bool json);

}  // namespace dynamiccl
