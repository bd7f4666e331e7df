// SPDX-License-Identifier: Apache-2.0
#include "src/base/byte_codec.h"

#include <gtest/gtest.h>

namespace dynamiccl {
namespace {

TEST(ByteCodec, RoundTrips) {
  ByteWriter writer;
  writer.Put(uint32_t{0xdeadbeef});
  writer.PutText("policy");
  writer.Put(1.5);
  ByteReader reader(writer.buffer());
  EXPECT_EQ(reader.Get<uint32_t>(), 0xdeadbeef);
  EXPECT_EQ(reader.GetText(100), "policy");
  EXPECT_EQ(reader.Get<double>(), 1.5);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.remaining(), 0u);
}

TEST(ByteCodec, EveryTruncationIsNoticed) {
  ByteWriter writer;
  writer.Put(uint64_t{7});
  writer.PutText("abc");
  for (size_t length = 0; length < writer.buffer().size(); ++length) {
    ByteReader reader(std::span(writer.buffer()).first(length));
    reader.Get<uint64_t>();
    reader.GetText(100);
    EXPECT_FALSE(reader.ok()) << length;
  }
}

TEST(ByteCodec, TextLongerThanTheLimitIsRefused) {
  ByteWriter writer;
  writer.Put(uint32_t{1u << 31});
  ByteReader reader(writer.buffer());
  EXPECT_EQ(reader.GetText(1 << 16), "");
  EXPECT_FALSE(reader.ok());
}

}  // namespace
}  // namespace dynamiccl
