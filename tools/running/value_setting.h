// SPDX-License-Identifier: Apache-2.0
// Changes live values of running jobs: the file that their leaders watch (DYNAMICCL_VALUES) is replaced, and
// all ranks of a job take the values up before the same call (docs/agree.md). Nothing is sent to a job.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/decision/agreed_values.h"

namespace dynamiccl {

// Sets values in the file, each written as NAME=VALUE, and returns all values that the file then has. Creates
// the file if it does not exist. A wrong value, or a wrong line in the file, is an error and changes nothing.
Result<AgreedValues> SetValues(const std::string& path, const std::vector<std::string>& settings);

}  // namespace dynamiccl
