// SPDX-License-Identifier: Apache-2.0
// hostccl's libnccl.so.2 must export the same strong and weak symbols as NVIDIA's. A program linked against
// one then runs on the other.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace dynamiccl {
namespace {

// Maps a symbol to nm's letter for it: T for strong, W for weak.
using Symbols = std::map<std::string, std::string>;

Symbols ExportsOf(const std::string& library) {
  std::string text;
  FILE* const pipe = ::popen(("nm -D --defined-only " + library).c_str(), "r");
  char buffer[4096];
  while (pipe != nullptr && std::fgets(buffer, sizeof(buffer), pipe) != nullptr) text += buffer;
  if (pipe != nullptr) ::pclose(pipe);
  Symbols symbols;
  std::istringstream lines(text);
  for (std::string address, letter, name; lines >> address >> letter >> name;) symbols[name] = letter;
  return symbols;
}

// The symbols that only one of the two libraries has, with the reason.
const std::map<std::string, std::string> kReasons = {
    {"ncclResetDebugInitInternal", "not in nccl.h: an entry of NVIDIA's own"},
    {"ncclLLA2ACalcSlots",
     "sizes buffers of a protocol between GPU kernels; returns no ncclResult_t to refuse with"},
    {"pncclLLA2ACalcSlots", "as above"},
};

bool IsExpected(const std::string& name) {
  // These are streams, events and buffers for machines without CUDA (src/nccl_abi/host_stream.h).
  return kReasons.contains(name) || name.rfind("hostccl", 0) == 0;
}

std::vector<std::string> Differences(const Symbols& own, const Symbols& nvidia) {
  std::vector<std::string> lines;
  for (const auto& [name, letter] : nvidia) {
    const auto found = own.find(name);
    if (found == own.end() && !IsExpected(name)) lines.push_back("missing: " + name);
    if (found != own.end() && found->second != letter) {
      lines.push_back(name + " is " + found->second + ", NVIDIA's " + letter);
    }
  }
  for (const auto& [name, letter] : own) {
    if (!nvidia.contains(name) && !IsExpected(name)) lines.push_back("only here: " + name);
  }
  return lines;
}

TEST(ExportedSymbols, AreNvidias) {
  if (!std::filesystem::exists(DYNAMICCL_TEST_NVIDIA_NCCL)) {
    GTEST_SKIP() << "NVIDIA's libnccl.so.2 2.32.3 was not found: run tools/setup/fetch_nccl.sh 2.32.3 and "
                    "configure again";
  }
  const Symbols own = ExportsOf(DYNAMICCL_TEST_HOSTCCL);
  const Symbols nvidia = ExportsOf(DYNAMICCL_TEST_NVIDIA_NCCL);
  ASSERT_GT(nvidia.size(), 150u);
  std::string text;
  for (const std::string& line : Differences(own, nvidia)) text += "  " + line + "\n";
  EXPECT_EQ(text, "");
  for (const auto& [name, reason] : kReasons) {
    std::printf("not compared: %s (%s)\n", name.c_str(), reason.c_str());
    EXPECT_NE(own.contains(name), nvidia.contains(name)) << name << " needs no reason any more";
  }
}

}  // namespace
}  // namespace dynamiccl
