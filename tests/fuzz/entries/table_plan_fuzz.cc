// SPDX-License-Identifier: Apache-2.0
// Decodes plans of table versions. Input: the bytes.
#include "src/decision/guard/table_plan.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dynamiccl;
  const auto plan = DecodePlan(fuzz::BytesOf(data, size));
  if (!plan) return 0;
  for (const KeyPlan& key : plan->keys) {
    for (const uint32_t ordinal : {0u, 4u, 100u, 5000u, UINT32_MAX}) {
      const PlannedUse use = UseOf(*plan, key, true, {ordinal, ordinal});
      fuzz::Require(use.arm < static_cast<int>(key.arms.size()), "an arm is one of the key's");
      (void)IsTimed(*plan, key, true, {ordinal, ordinal});
    }
  }
  const auto again = DecodePlan(EncodePlan(*plan));
  fuzz::Require(again && again->keys.size() == plan->keys.size(), "what was written is read back");
  return 0;
}
