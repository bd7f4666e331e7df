// SPDX-License-Identifier: Apache-2.0
// Parses override rules, CSV or TOML as FUZZED_NAME says. Input: the text.
#include "src/decision/override_rules.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dynamiccl;
  const auto rules = OverrideRules::Parse(fuzz::TextOf(fuzz::BytesOf(data, size)), FUZZED_NAME);
  if (!rules) return 0;
  for (int collective = 0; collective < kTunableCollectives; ++collective) {
    for (const uint64_t bytes : {uint64_t{0}, uint64_t{1} << 20, UINT64_MAX}) {
      (void)rules->Match({.collective = static_cast<Collective>(collective), .bytes = bytes, .n_ranks = 8});
    }
  }
  return 0;
}
