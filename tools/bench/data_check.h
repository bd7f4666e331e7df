// SPDX-License-Identifier: Apache-2.0
// Creates the test data of a benchmark and checks what a collective left in the receive buffer. Both run on
// the host. checked_element.h defines the values.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/bench/checked_element.h"

namespace dynamiccl {

// Number of elements that a rank sends, and number of elements that a rank receives.
uint64_t SendCount(const CheckedCall& call);
uint64_t ReceiveCount(const CheckedCall& call);

// True if the rank's receive buffer has a result to check. After Reduce and Gather only the root has one.
bool HasResult(const CheckedCall& call, int rank);

// The data that `rank` sends, encoded in the call's type.
std::vector<std::byte> InputOf(const CheckedCall& call, int rank);

// Number of elements of `received` on `rank` that differ from a result computed one element at a time.
// Averages of floating types may differ by rounding.
uint64_t CountWrong(const CheckedCall& call, int rank, const std::vector<std::byte>& received);

// LoadElement converts an element into a double. StoreElement converts back, rounded to nearest, ties to
// even; the value must lie in the range of the type.
double LoadElement(DataType type, const std::byte* element);
void StoreElement(DataType type, std::byte* element, double value);

}  // namespace dynamiccl
