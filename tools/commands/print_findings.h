// SPDX-License-Identifier: Apache-2.0
// Findings of `doctor` and `config` as a table with colours, or as JSON.
#pragma once

#include <vector>

#include "tools/doctor/check.h"

namespace dynamiccl {

// To standard output. The exit code: 1 where one of them is FAIL, else 0.
int PrintFindings(const std::vector<Finding>& findings, bool json);

}  // namespace dynamiccl
