// SPDX-License-Identifier: Apache-2.0
// In place of nvidia_values.cc where NVIDIA's header was not found.
#include "tests/src/nccl_abi/abi_values.h"

namespace dynamiccl::abi {

std::vector<AbiValue> NvidiaValues() {
  return {};
}

}  // namespace dynamiccl::abi
