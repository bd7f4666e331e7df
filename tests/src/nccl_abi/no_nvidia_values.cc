// SPDX-License-Identifier: Apache-2.0
// Replaces nvidia_values.cc if NVIDIA's header was not found.
#include "tests/src/nccl_abi/abi_values.h"

namespace dynamiccl::abi {

std::vector<AbiValue> NvidiaValues() {
  return {};
}

}  // namespace dynamiccl::abi
