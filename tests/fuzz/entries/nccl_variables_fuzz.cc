// SPDX-License-Identifier: Apache-2.0
// Parses NCCL's own grammars: NCCL_ALGO and NCCL_PROTO, algSelection, and the channel limits. Input: {text,
// 0} four times.
#include <cstdlib>

#include "src/hostccl/call_choice.h"
#include "src/hostccl/pinned_choice.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dynamiccl;
  ByteReader input(fuzz::BytesOf(data, size));
  const std::string algorithms = fuzz::NextText(input, 200);
  const std::string protocols = fuzz::NextText(input, 200);
  (void)hostccl::MasksOf({algorithms, protocols});
  const std::string selection = fuzz::NextText(input, 200);
  for (int collective = 0; collective < kTunableCollectives; ++collective) {
    (void)hostccl::ParseAlgorithmSelection(selection, static_cast<Collective>(collective));
  }
  const std::string limit = fuzz::NextText(input, 40);
  for (const char* name : {"NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"}) {
    ::setenv(name, limit.c_str(), 1);
    const hostccl::ChannelLimits limits = hostccl::LimitsFromEnvironment({});
    fuzz::Require(limits.min >= 0 && limits.max >= 0, "a limit is none or positive");
    ::unsetenv(name);
  }
  return 0;
}
