// SPDX-License-Identifier: Apache-2.0
// Parses policy files. Input: byte 0 = 0: the file follows. Otherwise changes to a valid policy follow, each
// {u32 place, u8 value}; the entry then corrects checksums and digest, so that the later checks are reached.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "src/base/sha256.h"
#include "src/policy/policy_file.h"
#include "src/policy/policy_layout.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/sample_policy.h"

namespace {

using namespace dynamiccl;

PolicySection SectionAt(const std::vector<std::byte>& bytes, size_t index) {
  PolicySection section;
  std::memcpy(&section, bytes.data() + sizeof(PolicyHeader) + index * sizeof(section), sizeof(section));
  return section;
}

void Reseal(std::vector<std::byte>& bytes, size_t sections) {
  const size_t end = bytes.size() - kTrailerBytes;
  for (size_t i = 0; i < sections; ++i) {
    PolicySection section = SectionAt(bytes, i);
    if (section.offset > end || section.bytes > end - section.offset) continue;
    section.checksum = XXH3_64bits(bytes.data() + section.offset, section.bytes);
    std::memcpy(bytes.data() + sizeof(PolicyHeader) + i * sizeof(section), &section, sizeof(section));
  }
  const Sha256Digest digest = Sha256Of(std::span<const std::byte>(bytes).first(end));
  std::memcpy(bytes.data() + end, digest.data(), digest.size());
}

std::vector<std::byte> Changed(ByteReader& input) {
  static const std::vector<std::byte> sample = FormatPolicy(*test::MakeRandomPolicy(1));
  std::vector<std::byte> bytes = sample;
  const size_t sections = reinterpret_cast<const PolicyHeader*>(sample.data())->section_count;
  while (input.ok() && input.remaining() >= 5) {
    const auto place = input.Get<uint32_t>();
    bytes[place % (bytes.size() - kTrailerBytes)] = input.Get<std::byte>();
  }
  Reseal(bytes, sections);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader input(fuzz::BytesOf(data, size));
  const bool raw = input.Get<uint8_t>() == 0;
  const std::span<const std::byte> rest = raw ? fuzz::RestOf(input) : std::span<const std::byte>{};
  const std::vector<std::byte> bytes = raw ? std::vector(rest.begin(), rest.end()) : Changed(input);
  const auto policy = ParsePolicy(bytes, "fuzz");
  if (policy) fuzz::Require(FormatPolicy(**policy) == bytes, "a policy that is read is written the same");
  return 0;
}
