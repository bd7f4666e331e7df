// SPDX-License-Identifier: Apache-2.0
// Finds public traces for tests that need real files. $DYNAMICCL_DATA names their folder. Without it, such
// tests are reported as skipped.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace dynamiccl {

// Returns the path; empty if the variable is not set or the file does not exist.
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
