// SPDX-License-Identifier: Apache-2.0
// What is compared between two headers of NCCL's C API: a name and its value, or the spelling of a function's
// type. The list (abi_values.inc) is compiled once against each header.
#pragma once

#include <string>
#include <vector>

namespace dynamiccl::abi {

struct AbiValue {
  std::string name;
  std::string value;
};

// What an initialiser sets, byte for byte. The structure must be static: only then are the bytes between its
// members zero.
template <typename Structure>
AbiValue InitialBytes(const char* name, const Structure& structure) {
  return {std::string("initialiser of ") + name,
          {reinterpret_cast<const char*>(&structure), sizeof(structure)}};
}

std::vector<AbiValue> OwnValues();     // against src/nccl_abi/nccl_api.h
std::vector<AbiValue> NvidiaValues();  // against NVIDIA's nccl.h

}  // namespace dynamiccl::abi
