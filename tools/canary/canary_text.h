// SPDX-License-Identifier: Apache-2.0
// A canary's answer for people and for programs.
#pragma once

#include <string>

#include "tools/canary/canary.h"
#include "tools/report/json_output.h"

namespace dynamiccl {

// One screen: a paragraph a judged release, the verdict first, then a table of all releases.
std::string FormatCanary(const CanaryRequest& request, const CanaryAnswer& answer);

// docs/canary.md lists the keys.
Json CanaryJson(const CanaryRequest& request, const CanaryAnswer& answer);

}  // namespace dynamiccl
