// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <typeinfo>

#include "src/nccl_abi/nccl_api.h"
#include "src/nccl_abi/nccl_function_list.h"
#include "tests/src/nccl_abi/abi_values.h"

namespace dynamiccl::abi {

std::vector<AbiValue> OwnValues() {
  std::vector<AbiValue> values;
#include "tests/src/nccl_abi/abi_values.inc"
  const ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  values.push_back({"initializer", {reinterpret_cast<const char*>(&config), sizeof(config)}});
  return values;
}

}  // namespace dynamiccl::abi
