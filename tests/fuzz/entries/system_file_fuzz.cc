// SPDX-License-Identifier: Apache-2.0
// Parses systems of the simulator. Input: the text. The entry adds the line with the seal if it is missing.
#include "src/simulator/system.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dynamiccl;
  std::string text(fuzz::TextOf(fuzz::BytesOf(data, size)));
  if (text.find(kSystemSealPrefix) == std::string::npos) {
    text += "\n" + std::string(kSystemSealPrefix) + std::string(kUncheckedSeal) + "\n";
  }
  const auto system = ParseSystem(text, "fuzz");
  if (!system) return 0;
  const auto again = ParseSystem(FormatSystem(*system), "again");
  fuzz::Require(again.has_value(), "a system that is written can be read");
  return 0;
}
