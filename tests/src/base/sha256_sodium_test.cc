// SPDX-License-Identifier: Apache-2.0
// Compares our SHA-256 with libsodium's on random inputs.
#include <gtest/gtest.h>
#include <sodium.h>

#include <random>
#include <vector>

#include "src/base/sha256.h"

namespace dynamiccl {
namespace {

TEST(Sha256, EqualsLibsodiumOnRandomInputs) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 2000; ++i) {
    std::vector<unsigned char> text(random() % 300), key(32);
    for (auto& byte : text) byte = static_cast<unsigned char>(random());
    for (auto& byte : key) byte = static_cast<unsigned char>(random());
    Sha256Digest expected{};
    crypto_hash_sha256(expected.data(), text.data(), text.size());
    ASSERT_EQ(Sha256Of(std::as_bytes(std::span(text))), expected);
    crypto_auth_hmacsha256(expected.data(), text.data(), text.size(), key.data());
    ASSERT_EQ(HmacSha256(std::as_bytes(std::span(key)), std::as_bytes(std::span(text))), expected);
  }
}

}  // namespace
}  // namespace dynamiccl
