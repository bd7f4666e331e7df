// SPDX-License-Identifier: Apache-2.0
// Which functions a library holds, its local ones included: read from the .symtab of its file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cuda_standin {

struct FunctionSymbol {
  std::string name;
  uint64_t offset = 0;  // from the address that the library was loaded at
};

// Empty where the file is stripped. Nothing, with *error set, where it cannot be read, is cut, or is no ELF
// file of 64 bits for x86-64.
std::optional<std::vector<FunctionSymbol>> ReadFunctionSymbols(const std::string& path, std::string* error);

}  // namespace cuda_standin
