// SPDX-License-Identifier: Apache-2.0
// Checks which functions of NCCL the harness links. The loader resolves strong references before main. One
// strong reference to a function that the oldest release lacks would keep the driver from starting on that
// release.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "src/nccl_abi/nccl_function_list.h"

namespace dynamiccl::real_nccl {
namespace {

constexpr int kOldest = 21801;  // the oldest release that the harness runs, in the form of ncclGetVersion

const std::map<std::string, int>& SinceWhen() {
#define REAL_NCCL_SINCE(since, door, result, name, parameters, arguments) {"nccl" #name, since},
  static const std::map<std::string, int> since = {DYNAMICCL_NCCL_FUNCTIONS(REAL_NCCL_SINCE)
                                                       DYNAMICCL_NCCL_FURTHER_FUNCTIONS(REAL_NCCL_SINCE)};
#undef REAL_NCCL_SINCE
  return since;
}

// Returns the undefined dynamic symbols of a file: the name and nm's letter, U for strong and w for weak.
std::map<std::string, std::string> UndefinedSymbols(const std::string& path) {
  std::string text;
  FILE* const pipe =
      ::popen(("nm -D --undefined-only --without-symbol-versions '" + path + "'").c_str(), "r");
  char buffer[4096];
  while (pipe != nullptr && std::fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
  EXPECT_TRUE(pipe != nullptr && ::pclose(pipe) == 0) << "nm (binutils) cannot read " << path;
  std::map<std::string, std::string> symbols;
  std::istringstream lines(text);
  for (std::string letter, name; lines >> letter >> name;) symbols[name] = letter;
  return symbols;
}

// Returns an empty string when the oldest release has every function of NCCL that the file must find.
// Otherwise says which functions are too new and what to do.
std::string TooNew(const std::map<std::string, std::string>& undefined) {
  std::string trouble;
  for (const auto& [name, letter] : undefined) {
    if (letter != "U" || !name.starts_with("nccl")) continue;
    const auto known = SinceWhen().find(name);
    if (known == SinceWhen().end())
      trouble += name + " is no function of nccl.h; ";
    else if (known->second > kOldest)
      trouble += name + " came with " + std::to_string(known->second) +
                 ": make it weak in tests/real_nccl/driver/newer_functions.h and ask World::Has; ";
  }
  return trouble;
}

TEST(DriverSymbols, NoStrongReferenceToAFunctionThatTheOldestReleaseLacks) {
  size_t objects = 0;
  for (const auto& entry : std::filesystem::directory_iterator(REAL_NCCL_DRIVER_LIBRARIES)) {
    if (entry.is_symlink()) continue;
    ++objects;
    EXPECT_EQ(TooNew(UndefinedSymbols(entry.path())), "") << entry.path();
  }
  EXPECT_GE(objects, 5u) << "the driver, the stand-in and three plugins";
}

// Shows that the check above sees the driver's references, among them those to newer functions.
TEST(DriverSymbols, OfTheDriverAreSeen) {
  const auto undefined = UndefinedSymbols(REAL_NCCL_DRIVER);
  EXPECT_EQ(undefined.at("ncclAllReduce"), "U");
  EXPECT_EQ(undefined.at("ncclCommWindowRegister"), "w");
}

TEST(DriverSymbols, StrongReferenceToANewerOrUnknownFunctionIsFound) {
  EXPECT_EQ(TooNew({{"ncclAllReduce", "U"}, {"ncclCommWindowRegister", "w"}, {"malloc", "U"}}), "");
  EXPECT_NE(TooNew({{"ncclCommWindowRegister", "U"}}), "");
  EXPECT_NE(TooNew({{"ncclMemAlloc", "U"}}), "") << "2.18 has none";
  EXPECT_NE(TooNew({{"ncclUnheardOf", "U"}}), "");
}

}  // namespace
}  // namespace dynamiccl::real_nccl
