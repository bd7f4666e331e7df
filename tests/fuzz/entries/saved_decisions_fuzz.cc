// SPDX-License-Identifier: Apache-2.0
// Parses saved decisions. Input: the text. The entry adds the end line if it is missing.
#include "src/base/sha256.h"
#include "src/decision/saved_decisions.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dynamiccl;
  std::string text(fuzz::TextOf(fuzz::BytesOf(data, size)));
  if (text.find("\nend ") == std::string::npos) {
    text += "end " + ToHex(Sha256Of(std::as_bytes(std::span(text)))) + "\n";
  }
  const auto saved = SavedDecisions::Parse(text, "fuzz");
  if (!saved) return 0;
  const auto again = SavedDecisions::Parse(saved->Text(), "again");
  fuzz::Require(again && again->configs() == saved->configs(), "what was written is read back");
  return 0;
}
