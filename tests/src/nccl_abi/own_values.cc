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
  static const ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  values.push_back(InitialBytes("ncclConfig_t", config));
  static const ncclCollConfig_t coll = DYNAMICCL_NCCL_COLL_CONFIG_INITIALIZER;
  values.push_back(InitialBytes("ncclCollConfig_t", coll));
  static const ncclSimInfo_t sim = DYNAMICCL_NCCL_SIM_INFO_INITIALIZER;
  values.push_back(InitialBytes("ncclSimInfo_t", sim));
  static const ncclEncryptionConfig_t enc = DYNAMICCL_NCCL_ENCRYPTION_CONFIG_INITIALIZER;
  values.push_back(InitialBytes("ncclEncryptionConfig_t", enc));
  return values;
}

}  // namespace dynamiccl::abi
