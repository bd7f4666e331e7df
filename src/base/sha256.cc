// SPDX-License-Identifier: Apache-2.0
// SHA-256 as FIPS 180-4 writes it down: the message is padded with a one bit, zeros and its length in bits,
// cut into blocks of 64 bytes, and each block is mixed into eight 32-bit words by 64 rounds.
#include "src/base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace dynamiccl {
namespace {

constexpr size_t kBlockBytes = 64;

// First 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
constexpr uint32_t kRoundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t LoadBigEndian(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | uint32_t{p[3]};
}

// Message schedule of a block: 16 words as they are, 48 derived ones (6.2.2, step 1).
void ExpandSchedule(const uint8_t* block, uint32_t (&w)[64]) {
  for (int i = 0; i < 16; ++i) w[i] = LoadBigEndian(block + 4 * i);
  for (int i = 16; i < 64; ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
}

}  // namespace

void Sha256::Compress(const uint8_t* block) {
  uint32_t w[64];
  ExpandSchedule(block, w);
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRoundConstants[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<uint32_t, 8> sums = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += sums[i];
}

void Sha256::Update(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  total_bytes_ += left;
  while (left > 0) {
    const size_t taken = std::min(left, kBlockBytes - pending_bytes_);
    std::memcpy(pending_.data() + pending_bytes_, data, taken);
    pending_bytes_ += taken, data += taken, left -= taken;
    if (pending_bytes_ == kBlockBytes) {
      Compress(pending_.data());
      pending_bytes_ = 0;
    }
  }
}

Sha256Digest Sha256::Finish() {
  const uint64_t bits = total_bytes_ * 8;
  // Padding of 5.1.1: if the length does not fit behind the 0x80, it goes into a block of its own.
  pending_[pending_bytes_++] = 0x80;
  if (pending_bytes_ > kBlockBytes - 8) {
    std::fill(pending_.begin() + pending_bytes_, pending_.end(), uint8_t{0});
    Compress(pending_.data());
    pending_bytes_ = 0;
  }
  std::fill(pending_.begin() + pending_bytes_, pending_.end(), uint8_t{0});
  for (int i = 0; i < 8; ++i) pending_[kBlockBytes - 1 - i] = static_cast<uint8_t>(bits >> (8 * i));
  Compress(pending_.data());
  Sha256Digest digest{};
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Sha256Digest Sha256Of(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Finish();
}

// RFC 2104: H(key ^ opad, H(key ^ ipad, message)), with ipad = 0x36 and opad = 0x5c repeated. A key longer
// than a block is replaced by its digest.
Sha256Digest HmacSha256(std::span<const std::byte> key, std::span<const std::byte> message) {
  std::array<std::byte, kBlockBytes> block{};
  if (key.size() > kBlockBytes) {
    const Sha256Digest shortened = Sha256Of(key);
    std::memcpy(block.data(), shortened.data(), shortened.size());
  } else if (!key.empty()) {
    std::memcpy(block.data(), key.data(), key.size());
  }
  const auto keyed = [&](std::byte pad, std::span<const std::byte> text) {
    std::array<std::byte, kBlockBytes> padded;
    std::transform(block.begin(), block.end(), padded.begin(), [&](std::byte b) { return b ^ pad; });
    Sha256 hash;
    hash.Update(padded);
    hash.Update(text);
    return hash.Finish();
  };
  const Sha256Digest inner = keyed(std::byte{0x36}, message);
  return keyed(std::byte{0x5c}, std::as_bytes(std::span(inner)));
}

bool DigestsEqual(const Sha256Digest& a, const Sha256Digest& b) {
  uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == 0;
}

std::string ToHex(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace dynamiccl
