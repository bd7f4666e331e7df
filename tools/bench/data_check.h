// SPDX-License-Identifier: Apache-2.0
// Test data of a benchmark, and whether a collective did what it should.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/bench/checked_element.h"

namespace dynamiccl {

// Elements that a rank sends and receives.
uint64_t SendCount(const CheckedCall& call);
uint64_t ReceiveCount(const CheckedCall& call);

// Whether the call leaves something to check in the rank's receive buffer.
bool HasResult(const CheckedCall& call, int rank);

// What `rank` sends, encoded.
std::vector<std::byte> InputOf(const CheckedCall& call, int rank);

// Elements of `received` on `rank` that differ from the serial result; averages of floating types may differ
// by rounding. Reduce and Gather are checked on their root only.
uint64_t CountWrong(const CheckedCall& call, int rank, const std::vector<std::byte>& received);

// One element as a double and back; rounds to nearest, ties to even. Numbers that the type cannot hold are
// not made here.
double LoadElement(DataType type, const std::byte* element);
void StoreElement(DataType type, std::byte* element, double value);

}  // namespace dynamiccl
