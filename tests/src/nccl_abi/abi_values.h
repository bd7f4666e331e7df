// SPDX-License-Identifier: Apache-2.0
// Values for the comparison of two headers of NCCL's C API: a name with its number, or with the spelling of a
// function's type. The list (abi_values.inc) is compiled once for each header.
#pragma once

#include <string>
#include <vector>

namespace dynamiccl::abi {

struct AbiValue {
  std::string name;
  std::string value;
};

// Records the bytes that an initialiser sets. The structure must be static, because only then are the padding
// bytes zero.
template <typename Structure>
AbiValue InitialBytes(const char* name, const Structure& structure) {
  return {std::string("initialiser of ") + name,
          {reinterpret_cast<const char*>(&structure), sizeof(structure)}};
}

std::vector<AbiValue> OwnValues();     // Measures src/nccl_abi/nccl_api.h.
std::vector<AbiValue> NvidiaValues();  // Measures NVIDIA's nccl.h.

}  // namespace dynamiccl::abi
