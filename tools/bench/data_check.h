// SPDX-License-Identifier: Apache-2.0
// Test data of a benchmark, and whether a collective did what it should: small whole numbers, exact in every
// element type.
#pragma once

#include <cstdint>
#include <vector>

#include "src/collective/data_type.h"
#include "src/collective/reduce_op.h"
#include "tools/bench/tested_collective.h"

namespace dynamiccl {

struct CheckedCall {
  TestedCollective collective = TestedCollective::kAllReduce;
  uint64_t count = 0;  // of the API
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  int n_ranks = 1;
  bool doubled = false;     // every rank's part counts twice (mulsum)
  uint64_t repetition = 0;  // other data each time
};

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
