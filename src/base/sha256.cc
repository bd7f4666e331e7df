// SPDX-License-Identifier: Apache-2.0
// SHA-256 as FIPS 180-4 writes it down: the message is padded with a one bit, zeros and its length in bits,
// cut into blocks of 64 bytes, and each block is mixed into eight 32-bit words by 64 rounds
// (sha256_blocks.h).
#include "src/base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/base/sha256_blocks.h"

namespace dynamiccl {
namespace {

constexpr size_t kBlockBytes = 64;

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

void MixPortably(uint32_t* state, const uint8_t* block) {
  uint32_t w[64];
  ExpandSchedule(block, w);
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  for (int i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kSha256Constants[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const uint32_t sums[] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state[i] += sums[i];
}

#if !defined(__x86_64__)
bool HasShaInstructions() {
  return false;
}

void MixByInstructions(uint32_t* state, const uint8_t* block) {
  MixPortably(state, block);
}
#endif

void Sha256::Compress(const uint8_t* block) {
  static const auto mix = HasShaInstructions() ? &MixByInstructions : &MixPortably;
  mix(state_.data(), block);
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

std::string HexDigestOf(std::string_view text) {
  return ToHex(Sha256Of(std::as_bytes(std::span(text))));
}

}  // namespace dynamiccl
