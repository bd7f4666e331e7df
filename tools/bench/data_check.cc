// SPDX-License-Identifier: Apache-2.0
// Applies the functions of checked_element.h to every element of a buffer.
#include "tools/bench/data_check.h"

namespace dynamiccl {

double LoadElement(DataType type, const std::byte* element) {
  return element::LoadTyped(type, element);
}

void StoreElement(DataType type, std::byte* element, double value) {
  element::StoreTyped(type, element, value);
}

uint64_t SendCount(const CheckedCall& call) {
  return LayoutOfArgument(call.collective, call.count, call.n_ranks).send;
}

uint64_t ReceiveCount(const CheckedCall& call) {
  return LayoutOfArgument(call.collective, call.count, call.n_ranks).receive;
}

bool HasResult(const CheckedCall& call, int rank) {
  const bool at_root =
      call.collective == TestedCollective::kReduce || call.collective == TestedCollective::kGather;
  return !at_root || rank == call.root;
}

std::vector<std::byte> InputOf(const CheckedCall& call, int rank) {
  const size_t width = ElementBytes(call.type);
  std::vector<std::byte> input(SendCount(call) * width);
  for (uint64_t i = 0; i < SendCount(call); ++i) {
    StoreElement(call.type, input.data() + i * width, element::InputValue(call, rank, i));
  }
  return input;
}

uint64_t CountWrong(const CheckedCall& call, int rank, const std::vector<std::byte>& received) {
  if (!HasResult(call, rank)) return 0;
  const size_t width = ElementBytes(call.type);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < ReceiveCount(call); ++i)
    wrong += element::IsWrong(call, rank, i, received.data() + i * width) ? 1 : 0;
  return wrong;
}

}  // namespace dynamiccl
