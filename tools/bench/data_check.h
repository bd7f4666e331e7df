// SPDX-License-Identifier: Apache-2.0
// Test data of a benchmark, and the check that a collective did what it should. Runs on the host;
// checked_element.h has the values.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/bench/checked_element.h"

namespace dynamiccl {

// Number of elements that a rank sends, and that it receives.
uint64_t SendCount(const CheckedCall& call);
uint64_t ReceiveCount(const CheckedCall& call);

// Whether the call leaves something to check in the rank's receive buffer: Reduce and Gather do so on their
// root only.
bool HasResult(const CheckedCall& call, int rank);

// The data that `rank` sends, encoded in the call's type.
std::vector<std::byte> InputOf(const CheckedCall& call, int rank);

// Number of elements of `received` on `rank` that differ from the serial result. Averages of floating types
// may differ by rounding.
uint64_t CountWrong(const CheckedCall& call, int rank, const std::vector<std::byte>& received);

// Converts one element into a double and back, rounded to nearest, ties to even. The value must lie in the
// range of the type.
double LoadElement(DataType type, const std::byte* element);
void StoreElement(DataType type, std::byte* element, double value);

}  // namespace dynamiccl
