// SPDX-License-Identifier: Apache-2.0
// The result of a demo in sentences: wins, losses and where nothing could be won, with their noise.
#pragma once

#include <string>
#include <vector>

#include "tools/report/demo_result.h"

namespace dynamiccl {

std::vector<std::string> FindingsOf(const DemoResult& result);

}  // namespace dynamiccl
