// SPDX-License-Identifier: Apache-2.0
// Reads the index of a checkpoint. Input: byte 0 = 0: the file follows. Otherwise the bytes between length
// and checksum follow, and the entry adds these two.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tests/fuzz/fuzz_input.h"
#include "zero_workloads/checkpoint/checkpoint_index.h"

namespace {

using namespace dynamiccl;

std::vector<std::byte> Sealed(std::span<const std::byte> body) {
  static const std::vector<std::byte> empty = zero::EncodeIndex({});
  constexpr size_t kMagicAndVersion = 12;
  ByteWriter file;
  file.PutBytes(std::span(empty).first(kMagicAndVersion));
  file.Put(uint64_t{kMagicAndVersion + body.size() + 2 * sizeof(uint64_t)});
  file.PutBytes(body);
  file.Put(uint64_t{XXH3_64bits(file.buffer().data(), file.buffer().size())});
  return std::move(file.buffer());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader input(fuzz::BytesOf(data, size));
  const bool seals = input.Get<uint8_t>() != 0;
  const auto rest = fuzz::RestOf(input);
  const std::vector<std::byte> bytes = seals ? Sealed(rest) : std::vector(rest.begin(), rest.end());
  const auto index = zero::DecodeIndex(bytes);
  if (!index) return 0;
  (void)zero::CheckComplete(*index);
  fuzz::Require(zero::EncodeIndex(*index) == bytes, "an index that is read is written the same");
  return 0;
}
