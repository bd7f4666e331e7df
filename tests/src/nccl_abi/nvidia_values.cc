// SPDX-License-Identifier: Apache-2.0
#include <nccl.h>

#include <cstddef>
#include <typeinfo>

#include "src/nccl_abi/nccl_function_list.h"
#include "tests/src/nccl_abi/abi_values.h"

namespace dynamiccl::abi {

std::vector<AbiValue> NvidiaValues() {
  std::vector<AbiValue> values;
#include "tests/src/nccl_abi/abi_values.inc"
  static const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  values.push_back(InitialBytes("ncclConfig_t", config));
  static const ncclCollConfig_t coll = NCCL_COLLCONFIG_INITIALIZER;
  values.push_back(InitialBytes("ncclCollConfig_t", coll));
  static const ncclSimInfo_t sim = NCCL_SIM_INFO_INITIALIZER;
  values.push_back(InitialBytes("ncclSimInfo_t", sim));
  static const ncclEncryptionConfig_t enc = NCCL_ENCRYPTION_CONFIG_INITIALIZER;
  values.push_back(InitialBytes("ncclEncryptionConfig_t", enc));
  return values;
}

}  // namespace dynamiccl::abi
