// SPDX-License-Identifier: Apache-2.0
// Formats a canary's answer for people and for programs.
#pragma once

#include <string>

#include "tools/canary/canary.h"
#include "tools/report/json_output.h"

namespace dynamiccl {

// About one screen: one paragraph for each judged release, which begins with the verdict, then a table of all
// releases.
std::string FormatCanary(const CanaryRequest& request, const CanaryAnswer& answer);

// Returns the names of the machines. Equal neighbours are named once: "dgx_h100, 3 times h100_one_nic".
std::string MachineNames(const CanaryRequest& request);

// Returns the answer as JSON. docs/canary.md lists the keys.
Json CanaryJson(const CanaryRequest& request, const CanaryAnswer& answer);

}  // namespace dynamiccl
