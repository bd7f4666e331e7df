// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104) for the object loaded into jobs, which may need nothing
// but libc. Held to the published vectors and to libsodium in tests/src/base/sha256_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dynamiccl {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  void Update(std::span<const std::byte> bytes);
  // Ends the computation; the object must not be used afterwards.
  Sha256Digest Finish();

 private:
  void Compress(const uint8_t* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_{};
  size_t pending_bytes_ = 0;
  uint64_t total_bytes_ = 0;
};

Sha256Digest Sha256Of(std::span<const std::byte> bytes);
Sha256Digest HmacSha256(std::span<const std::byte> key, std::span<const std::byte> message);

// Compares in constant time.
bool DigestsEqual(const Sha256Digest& a, const Sha256Digest& b);

// 64 lower-case hexadecimal digits.
std::string ToHex(std::span<const uint8_t> bytes);

}  // namespace dynamiccl
