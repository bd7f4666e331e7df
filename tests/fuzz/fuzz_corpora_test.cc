// SPDX-License-Identifier: Apache-2.0
// Runs every fuzz entry on every input of tests/fuzz/corpus: whole, cut, and changed at random. So a fault
// that a fuzzer once found is found again by every build, also without a fuzzer, and under each sanitizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "fuzz_entries.h"
#include "tests/support/rounds.h"

#define DYNAMICCL_FUZZ_DECLARE(name) extern "C" int Fuzz_##name(const uint8_t* data, size_t size);
DYNAMICCL_FUZZ_ENTRIES(DYNAMICCL_FUZZ_DECLARE)
#undef DYNAMICCL_FUZZ_DECLARE

namespace dynamiccl {
namespace {

struct Entry {
  const char* name;
  int (*run)(const uint8_t* data, size_t size);
};
constexpr Entry kEntries[] = {
#define DYNAMICCL_FUZZ_ROW(name) {#name, Fuzz_##name},
    DYNAMICCL_FUZZ_ENTRIES(DYNAMICCL_FUZZ_ROW)
#undef DYNAMICCL_FUZZ_ROW
};

std::vector<std::string> InputsOf(const std::string& name) {
  std::vector<std::string> inputs;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(DYNAMICCL_FUZZ_CORPUS) + "/" + name)) {
    std::ifstream stream(file.path(), std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  std::sort(inputs.begin(), inputs.end());
  return inputs;
}

class FuzzCorpora : public ::testing::TestWithParam<Entry> {
 protected:
  static void Run(const std::string& input) {
    EXPECT_EQ(GetParam().run(reinterpret_cast<const uint8_t*>(input.data()), input.size()), 0);
  }
};

TEST_P(FuzzCorpora, AreTakenWholeCutAndChanged) {
  const std::vector<std::string> inputs = InputsOf(GetParam().name);
  ASSERT_FALSE(inputs.empty());
  Run("");
  std::mt19937 random(1);
  for (const std::string& input : inputs) {
    Run(input);
    if (input.empty()) continue;
    for (int round = 0; round < testing::Rounds(15); ++round) {
      Run(input.substr(0, random() % input.size()));
      std::string changed = input;
      for (int change = 0; change <= round % 4; ++change) {
        changed[random() % changed.size()] = static_cast<char>(random());
      }
      Run(changed);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Entries, FuzzCorpora, ::testing::ValuesIn(kEntries),
                         [](const auto& entry) { return std::string(entry.param.name); });

}  // namespace
}  // namespace dynamiccl
