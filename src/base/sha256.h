// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104). The project has its own implementation because the object
// that is loaded into jobs may need nothing but libc. tests/src/base/sha256_test.cc holds it to the published
// vectors and to libsodium.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dynamiccl {

using Sha256Digest = std::array<uint8_t, 32>;

// Computes one digest over bytes that arrive in pieces. Each object serves one message and one thread; it
// allocates nothing and cannot fail.
class Sha256 {
 public:
  void Update(std::span<const std::byte> bytes);
  // Ends the computation and returns the digest. The object must not be used afterwards.
  Sha256Digest Finish();

 private:
  void Compress(const uint8_t* block);

  // Initial hash value of FIPS 180-4, 5.3.3.
  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  // Bytes that do not fill a block of 64 yet.
  std::array<uint8_t, 64> pending_{};
  size_t pending_bytes_ = 0;
  uint64_t total_bytes_ = 0;
};

// Returns the digest of one contiguous message.
Sha256Digest Sha256Of(std::span<const std::byte> bytes);
// Returns the keyed digest that authenticates control messages; a key may have any length.
Sha256Digest HmacSha256(std::span<const std::byte> key, std::span<const std::byte> message);

// Compares in time that does not depend on the contents, so that a forger learns nothing from the duration.
bool DigestsEqual(const Sha256Digest& a, const Sha256Digest& b);

// Returns two lower-case hexadecimal digits for each byte, so 64 for a digest.
std::string ToHex(std::span<const uint8_t> bytes);
// Returns the digest of a text as 64 such digits.
std::string HexDigestOf(std::string_view text);

}  // namespace dynamiccl
