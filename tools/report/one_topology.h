// SPDX-License-Identifier: Apache-2.0
// Which topology of a measurement file counts where only one can.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/report/choice_comparison.h"

namespace dynamiccl {

// `wanted`, or where that is empty the only topology of the cells. kInvalidArgument: there is none of that
// name, or no only one; `source` stands in the message.
Result<std::string> OneTopology(const std::vector<SweepCell>& cells, const std::string& wanted,
                                const std::string& source);

}  // namespace dynamiccl
