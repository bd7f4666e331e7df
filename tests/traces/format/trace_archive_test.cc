// SPDX-License-Identifier: Apache-2.0
#include "traces/format/trace_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <sstream>

#include "tests/traces/any_trace.h"
#include "traces/format/record_columns.h"
#include "traces/format/trace_writer.h"

namespace dynamiccl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Bytes = std::vector<std::byte>;

Bytes Archive(const Trace& trace) {
  std::ostringstream stream;
  AppendTraceArchive(stream, trace);
  const std::string text = stream.str();
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Reads by the reader that every command uses. It recognises archives by their content.
Result<Trace> Parse(const Bytes& bytes, TraceReading reading = TraceReading::kStrict) {
  return ParseTrace(bytes, "x.ctracez", reading);
}

// Returns a trace like that of a recorder. Times and durations are noisy, and the calls of a step repeat.
Trace ManyRecords(size_t records) {
  std::mt19937_64 random(5);
  SectionBuilder builder(0, 8);
  TraceSection section = builder.section();
  int64_t now = 1'000'000;
  for (size_t i = 0; section.records.size() < records; ++i) {
    IssuedCall issued;
    issued.call.call_number = i;
    issued.call.collective = i % 3 == 0 ? Collective::kReduceScatter : Collective::kAllGather;
    issued.call.bytes = 4096u << (i % 96 / 8);
    issued.issued_ns = now += 20'000 + static_cast<int64_t>(random() % 4096);
    TraceRecord record = CallRecord(0, issued);
    record.duration_ns = 50'000 + static_cast<uint32_t>(random() % 1024);
    record.duration_source = static_cast<uint8_t>(DurationSource::kStream);
    Seal(record);
    section.records.push_back(record);
  }
  return {{section}};
}

struct Block {
  size_t offset;
  ArchiveBlockHeader header;
};

std::vector<Block> BlocksOf(const Bytes& bytes) {
  std::vector<Block> blocks;
  for (size_t offset = sizeof(ArchiveHeader); offset < bytes.size();) {
    Block block{offset, {}};
    std::memcpy(&block.header, bytes.data() + offset, sizeof(block.header));
    blocks.push_back(block);
    offset += sizeof(block.header) + block.header.payload_bytes;
  }
  return blocks;
}

TEST(TraceArchive, EveryBitComesBack) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Trace trace = AnyTrace(seed);
    const auto parsed = Parse(Archive(trace));
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(*parsed, trace) << "seed " << seed;
    EXPECT_EQ(FormatTrace(*parsed), FormatTrace(trace));
  }
  EXPECT_EQ(*Parse(Archive({})), Trace());
}

// Archives that are older than the field `replaced` have the shorter description.
TEST(TraceArchive, DescriptionsAreLongerOnlyWithReplacedRecords) {
  Trace trace = ManyRecords(100);
  const auto description_bytes = [&] {
    const Bytes bytes = Archive(trace);
    const Block block = BlocksOf(bytes).front();
    const auto* payload = bytes.data() + block.offset + sizeof(block.header);
    const std::span<const std::byte> frame(payload, block.header.payload_bytes);
    return Decompress(frame, 528) ? 528 : Decompress(frame, sizeof(TraceHeader)) ? 536 : 0;
  };
  EXPECT_EQ(description_bytes(), 528);
  EXPECT_EQ(*Parse(Archive(trace)), trace);
  trace.sections[0].lost = 7;
  trace.sections[0].replaced = 5;
  EXPECT_EQ(description_bytes(), 536);
  EXPECT_EQ(*Parse(Archive(trace)), trace);
}

TEST(TraceArchive, SeveralBlocksComeBackAndAreSmall) {
  const Trace trace = ManyRecords(3 * kArchiveBlockRecords / 2);
  const Bytes bytes = Archive(trace);
  EXPECT_EQ(BlocksOf(bytes).size(), 1u + 2 + 1);
  ASSERT_EQ(*Parse(bytes), trace);
  // Each record has 12 and 10 bits of noise, which cannot be compressed.
  EXPECT_LT(static_cast<double>(bytes.size()) / static_cast<double>(trace.sections[0].records.size()), 6.0);
}

TEST(TraceArchive, EveryTruncationIsAnErrorThatNamesItsBlock) {
  const Bytes bytes = Archive(AnyTrace(1));
  const auto blocks = BlocksOf(bytes);
  for (size_t length = 8; length < bytes.size(); ++length) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<long>(length));
    const auto parsed = Parse(cut);
    ASSERT_FALSE(parsed) << "length " << length;
    size_t at = 0;  // offset of the block that is cut
    for (const Block& block : blocks)
      if (block.offset <= length) at = block.offset;
    EXPECT_THAT(parsed.error().message, HasSubstr(fmt::format("x.ctracez: block at byte {}: ", at)));
    EXPECT_THAT(parsed.error().hint, HasSubstr("trace recover"));
    (void)Parse(cut, TraceReading::kSalvage);
  }
}

TEST(TraceArchive, EveryFlippedBitIsAnErrorThatNamesItsBlock) {
  const Bytes bytes = Archive(AnyTrace(2));
  const auto blocks = BlocksOf(bytes);
  std::mt19937_64 random(2);
  for (int i = 0; i < 3000; ++i) {
    Bytes damaged = bytes;
    const size_t place = 8 + random() % (bytes.size() - 8);
    damaged[place] ^= static_cast<std::byte>(1 << (random() % 8));
    const auto parsed = Parse(damaged);
    ASSERT_FALSE(parsed) << "byte " << place;
    size_t at = 0;
    for (const Block& block : blocks)
      if (block.offset <= place) at = block.offset;
    EXPECT_THAT(parsed.error().message, HasSubstr(fmt::format("block at byte {}: ", at)));
    (void)Parse(damaged, TraceReading::kSalvage);
  }
}

TEST(TraceArchive, SalvageLosesTheDamagedBlockAlone) {
  const Trace trace = ManyRecords(3 * kArchiveBlockRecords);
  const Bytes bytes = Archive(trace);
  const auto blocks = BlocksOf(bytes);
  ASSERT_EQ(blocks.size(), 5u);
  for (const size_t place : {size_t{4}, sizeof(ArchiveBlockHeader) + 1000}) {  // in a header, in a payload
    Bytes damaged = bytes;
    damaged[blocks[2].offset + place] ^= std::byte{1};
    const auto salvaged = Parse(damaged, TraceReading::kSalvage);
    ASSERT_TRUE(salvaged) << salvaged.error().message;
    const TraceSection& section = salvaged->sections.at(0);
    EXPECT_EQ(section.lost, kArchiveBlockRecords);
    EXPECT_EQ(section.replaced, 0u);
    ASSERT_EQ(section.records.size(), 2 * kArchiveBlockRecords);
    EXPECT_EQ(section.records[kArchiveBlockRecords].call_number,
              trace.sections[0].records[2 * kArchiveBlockRecords].call_number);
  }
}

TEST(TraceArchive, SalvageNamesADamagedHeader) {
  const Trace trace = ManyRecords(100);
  Bytes damaged = Archive(trace);
  damaged[offsetof(ArchiveHeader, header_bytes)] ^= std::byte{1};
  const auto salvaged = Parse(damaged, TraceReading::kSalvage);
  ASSERT_TRUE(salvaged) << salvaged.error().message;
  EXPECT_EQ(salvaged->sections, trace.sections);
  EXPECT_THAT(salvaged->damage, ElementsAre("x.ctracez: block at byte 0: the archive's header is damaged"));
}

TEST(TraceArchive, SalvageDescribesAFewDamagesAndCountsTheOthers) {
  Trace trace;
  trace.sections.assign(100, ManyRecords(1).sections[0]);
  Bytes damaged = Archive(trace);
  for (const Block& block : BlocksOf(damaged))
    if (block.header.kind == static_cast<uint32_t>(ArchiveBlockKind::kRecords))
      damaged[block.offset + sizeof(ArchiveBlockHeader)] ^= std::byte{1};
  const auto salvaged = Parse(damaged, TraceReading::kSalvage);
  ASSERT_TRUE(salvaged) << salvaged.error().message;
  EXPECT_EQ(salvaged->sections.size(), 100u);
  ASSERT_EQ(salvaged->damage.size(), 21u);
  EXPECT_EQ(salvaged->damage.back(), "x.ctracez: 80 more damaged places");
}

TEST(TraceArchive, SalvageKeepsRecordsWhoseSectionIsGone) {
  const Trace trace = ManyRecords(100);
  Bytes damaged = Archive(trace);
  damaged[sizeof(ArchiveHeader) + sizeof(ArchiveBlockHeader) + 3] ^= std::byte{1};
  const auto salvaged = Parse(damaged, TraceReading::kSalvage);
  ASSERT_TRUE(salvaged);
  EXPECT_EQ(salvaged->sections.at(0).rank, -1);
  EXPECT_EQ(salvaged->sections[0].records.size(), 100u);
  std::fill(damaged.begin() + sizeof(ArchiveHeader), damaged.end(), std::byte{0});
  EXPECT_FALSE(Parse(damaged, TraceReading::kSalvage));
}

// Each block is valid by itself, but no writer produces this order.
TEST(TraceArchive, MissingDoubledAndForeignBlocksAreErrors) {
  const Bytes bytes = Archive(ManyRecords(2 * kArchiveBlockRecords));
  const auto blocks = BlocksOf(bytes);
  const auto piece = [&](size_t block) {
    const size_t end = block + 1 < blocks.size() ? blocks[block + 1].offset : bytes.size();
    return Bytes(bytes.begin() + static_cast<long>(blocks[block].offset),
                 bytes.begin() + static_cast<long>(end));
  };
  const std::vector<std::vector<size_t>> orders = {{0, 1, 3}, {0, 2, 3}, {0, 2, 1, 3},    {0, 1, 1, 2, 3},
                                                   {1, 2, 3}, {0, 1, 2}, {0, 1, 2, 3, 3}, {0, 0, 1, 2, 3}};
  for (const auto& order : orders) {
    Bytes shuffled(bytes.begin(), bytes.begin() + sizeof(ArchiveHeader));
    for (const size_t block : order) {
      const Bytes next = piece(block);
      shuffled.insert(shuffled.end(), next.begin(), next.end());
    }
    EXPECT_FALSE(Parse(shuffled));
    (void)Parse(shuffled, TraceReading::kSalvage);
  }
}

// A hostile file has right checksums, but its numbers ask for all memory.
TEST(TraceArchive, TakesNoMoreMemoryThanABlock) {
  const Bytes bytes = Archive(ManyRecords(10));
  const Block block = BlocksOf(bytes).at(1);
  for (const uint32_t records : {11u, kArchiveBlockRecords, UINT32_MAX}) {
    Bytes hostile = bytes;
    ArchiveBlockHeader header = block.header;
    header.records = records;
    header.checksum = XXH3_64bits(&header, offsetof(ArchiveBlockHeader, checksum));
    std::memcpy(hostile.data() + block.offset, &header, sizeof(header));
    EXPECT_THAT(Parse(hostile).error().message, HasSubstr(fmt::format("block at byte {}", block.offset)));
  }
  EXPECT_FALSE(Decompress(Compress(Bytes(100)), 99));
  EXPECT_FALSE(Decompress(Bytes(100), 100));
}

TEST(TraceArchive, RefusesOtherVersions) {
  ArchiveHeader header{};
  std::memcpy(header.magic, kArchiveMagic, sizeof(kArchiveMagic));
  header.version = 7;
  header.checksum = XXH3_64bits(&header, offsetof(ArchiveHeader, checksum));
  const auto bytes = std::as_bytes(std::span(&header, 1));
  EXPECT_THAT(Parse({bytes.begin(), bytes.end()}).error().message,
              HasSubstr("archive version 7, this build reads 1"));
}

}  // namespace
}  // namespace dynamiccl
