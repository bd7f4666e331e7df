// SPDX-License-Identifier: Apache-2.0
// Which sizes the demo sweeps: those that the training runs really used, one for each size class.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/collective/collective.h"
#include "src/collective/size_class.h"

namespace dynamiccl {

// Size class -> bytes that stand for it.
using ObservedSizes = std::map<Collective, std::map<SizeClass, uint64_t>>;

// Reads the traces in the given order; the first size seen in a class stands for it. At most `limit` classes
// of a collective are kept: those that carry the most bytes, and always the smallest and largest.
Result<ObservedSizes> ObserveSizes(const std::vector<std::string>& traces, size_t limit);

// Every third class of each collective, never the smallest or the largest: between sizes that the agents saw.
std::map<Collective, std::set<SizeClass>> HeldOutClasses(const ObservedSizes& sizes);

}  // namespace dynamiccl
