// SPDX-License-Identifier: Apache-2.0
#include "src/base/sha256.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "src/base/sha256_blocks.h"

namespace dynamiccl {
namespace {

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// These vectors are NIST's examples in FIPS 180-4.
TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(ToHex(Sha256Of(Bytes(""))), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HexDigestOf("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ToHex(Sha256Of(Bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(ToHex(Sha256Of(Bytes(std::string(1'000'000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// These are the test cases 2 and 6 of RFC 4231. The key of case 6 is longer than a block.
TEST(HmacSha256, PublishedVectors) {
  EXPECT_EQ(ToHex(HmacSha256(Bytes("Jefe"), Bytes("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(ToHex(HmacSha256(Bytes(std::string(131, '\xaa')),
                             Bytes("Test Using Larger Than Block-Size Key - Hash Key First"))),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Sha256, PiecesGiveTheSameAsTheWhole) {
  const std::string text(1000, 'q');
  for (size_t piece : {1u, 7u, 63u, 64u, 65u, 500u}) {
    Sha256 hash;
    for (size_t i = 0; i < text.size(); i += piece) hash.Update(Bytes(text.substr(i, piece)));
    EXPECT_EQ(hash.Finish(), Sha256Of(Bytes(text))) << piece;
  }
}

TEST(Sha256, InstructionsMixABlockAsPortableCodeDoes) {
  if (!HasShaInstructions()) GTEST_SKIP() << "this processor has no SHA instructions";
  std::mt19937 random(5);
  for (int i = 0; i < 1000; ++i) {
    std::array<uint32_t, 8> portable, by_instructions;
    for (uint32_t& word : portable) word = static_cast<uint32_t>(random());
    by_instructions = portable;
    uint8_t block[64];
    for (uint8_t& byte : block) byte = static_cast<uint8_t>(random());
    MixPortably(portable.data(), block);
    MixByInstructions(by_instructions.data(), block);
    ASSERT_EQ(by_instructions, portable);
  }
}

}  // namespace
}  // namespace dynamiccl
