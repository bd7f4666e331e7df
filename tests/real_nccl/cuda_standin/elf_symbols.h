// SPDX-License-Identifier: Apache-2.0
// Lists the functions of a library, including local ones. The list comes from the .symtab section of the
// library's file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cuda_standin {

struct FunctionSymbol {
  std::string name;
  uint64_t offset = 0;  // from the address where the library is loaded
};

// Returns the functions of the file at `path`. The list is empty when the file is stripped. Returns nothing
// and sets *error when the file cannot be read, is cut, or is no 64-bit ELF file for x86-64.
std::optional<std::vector<FunctionSymbol>> ReadFunctionSymbols(const std::string& path, std::string* error);

}  // namespace cuda_standin
