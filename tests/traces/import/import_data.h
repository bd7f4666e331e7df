// SPDX-License-Identifier: Apache-2.0
// Where public traces lie for tests that need real files: $DYNAMICCL_DATA; such tests are skipped visibly
// without it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace dynamiccl {

// Empty when the variable is not set or the file is not there.
inline std::string DataFile(const std::string& name) {
  const char* const root = std::getenv("DYNAMICCL_DATA");
  if (root == nullptr) return {};
  const std::string path = std::string(root) + "/" + name;
  return std::filesystem::exists(path) ? path : std::string();
}

}  // namespace dynamiccl

#define DYNAMICCL_NEED_DATA(variable, name)    \
  const std::string variable = DataFile(name); \
  if (variable.empty()) GTEST_SKIP() << "set DYNAMICCL_DATA to the folder that holds " << (name)
