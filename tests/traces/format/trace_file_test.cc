// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <filesystem>
#include <fstream>

#include "tests/traces/any_trace.h"
#include "traces/format/trace_reader.h"
#include "traces/format/trace_writer.h"
#include "traces/record/recorder.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;

Result<Trace> Parse(const std::vector<std::byte>& bytes, TraceReading reading = TraceReading::kStrict) {
  return ParseTrace(bytes, "x.ctrace", reading);
}

class RecordedFile : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  const std::string path_ = testing::TempDir() + fmt::format("trace_file_{}.ctrace", ::getpid());
};

TEST(TraceFile, EveryBitComesBack) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Trace trace = AnyTrace(seed);
    const auto parsed = Parse(FormatTrace(trace));
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(*parsed, trace) << "seed " << seed;
  }
}

TEST(TraceFile, EveryTruncationIsAnErrorAndNeverACrash) {
  Trace trace = AnyTrace(1);
  trace.sections.resize(1);
  const auto bytes = FormatTrace(trace);
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<long>(length));
    const auto parsed = Parse(cut);
    ASSERT_FALSE(parsed) << "length " << length;
    EXPECT_THAT(parsed.error().message, HasSubstr("x.ctrace: byte "));
    const auto salvaged = Parse(cut, TraceReading::kSalvage);
    EXPECT_EQ(salvaged.has_value(), length >= kTraceHeaderBytes);
  }
}

TEST(TraceFile, EveryFlippedBitOfAFinishedFileIsAnError) {
  Trace trace = AnyTrace(2);
  trace.sections.resize(1);
  const auto bytes = FormatTrace(trace);
  std::mt19937_64 random(2);
  for (int i = 0; i < 3000; ++i) {
    auto damaged = bytes;
    damaged[random() % bytes.size()] ^= static_cast<std::byte>(1 << (random() % 8));
    EXPECT_FALSE(Parse(damaged));
    Parse(damaged, TraceReading::kSalvage);  // this must return
  }
}

TEST(TraceFile, SalvageTakesWhatIsWhole) {
  const Trace trace = AnyTrace(3);
  auto bytes = FormatTrace(trace);
  const size_t records = trace.sections[0].records.size();
  ASSERT_GT(records, 3u);
  bytes[kTraceHeaderBytes + sizeof(SegmentHeader) + 2 * sizeof(TraceRecord)] ^= std::byte{1};
  const auto salvaged = Parse(bytes, TraceReading::kSalvage);
  ASSERT_TRUE(salvaged);
  ASSERT_EQ(salvaged->sections.size(), 3u);
  EXPECT_EQ(salvaged->sections[0].records.size(), records - 1);
  EXPECT_EQ(salvaged->sections[0].lost, trace.sections[0].lost + 1);
  EXPECT_EQ(salvaged->sections[0].replaced, trace.sections[0].replaced);
  EXPECT_EQ(salvaged->sections[1], trace.sections[1]);
}

// A later version may make records longer. This version reads the part that it knows.
TEST(TraceFile, ReadsLongerRecords) {
  Trace trace = AnyTrace(4);
  trace.sections.resize(1);
  const auto bytes = FormatTrace(trace);
  TraceHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  constexpr size_t kLonger = 80;
  header.record_bytes = kLonger;
  header.segment_bytes = sizeof(SegmentHeader) + header.records_per_segment * kLonger;
  header.section_bytes = kTraceHeaderBytes + header.segment_bytes;
  std::vector<std::byte> longer(header.section_bytes, std::byte{0x5a});
  header.checksum = XXH3_64bits(&header, offsetof(TraceHeader, checksum));
  std::memcpy(longer.data(), bytes.data(), kTraceHeaderBytes + sizeof(SegmentHeader));
  for (size_t i = 0; i < header.records_per_segment; ++i) {
    std::memcpy(longer.data() + kTraceHeaderBytes + sizeof(SegmentHeader) + i * kLonger,
                bytes.data() + kTraceHeaderBytes + sizeof(SegmentHeader) + i * sizeof(TraceRecord),
                sizeof(TraceRecord));
  }
  std::memcpy(longer.data(), &header, sizeof(header));
  header.content_hash = ContentHash(longer);
  std::memcpy(longer.data(), &header, sizeof(header));
  const auto parsed = Parse(longer);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(*parsed, trace);
}

TEST(TraceFile, RefusesOtherFilesAndVersions) {
  EXPECT_THAT(Parse({}).error().message, HasSubstr("the file is empty"));
  EXPECT_THAT(Parse(std::vector<std::byte>(8192)).error().message, HasSubstr("not a trace"));
  EXPECT_THAT(Parse(std::vector<std::byte>(32)).error().message, HasSubstr("not a trace"));
  auto bytes = FormatTrace(AnyTrace(5));
  bytes[8] = std::byte{9};
  EXPECT_THAT(Parse(bytes).error().message, HasSubstr("version 9, this build reads 1"));
  EXPECT_EQ(ReadTrace("/nonexistent/a.ctrace").error().kind, ErrorKind::kNotFound);
}

TEST_F(RecordedFile, OfARunningProcessIsReadable) {
  auto recorder =
      Recorder::Open({.path = path_, .records_per_thread = 128, .rank = 1, .world = 2, .library = "NCCL"});
  ASSERT_TRUE(recorder);
  (*recorder)->Append(CommunicatorRecord(0, {.id = 9, .rank = 1, .n_ranks = 2, .n_nodes = 1}, 5));
  for (uint64_t n = 0; n < 1000; ++n) {
    TraceRecord record = EmptyRecord(RecordKind::kCollective, static_cast<int64_t>(10 + n));
    record.call_number = n;
    (*recorder)->Append(record);
  }
  const auto trace = ReadTrace(path_);
  ASSERT_TRUE(trace) << trace.error().message;
  const TraceSection& section = trace->sections.at(0);
  EXPECT_EQ(section.rank, 1);
  EXPECT_FALSE(section.closed);
  EXPECT_EQ(section.lost, 1000u - 128);
  EXPECT_EQ(section.replaced, section.lost);
  ASSERT_EQ(section.records.size(), 129u);
  EXPECT_EQ(section.records[0].kind, static_cast<uint16_t>(RecordKind::kCommunicator));
  EXPECT_EQ(section.records[1].call_number, 1000u - 128);
  (*recorder)->Close();
  EXPECT_TRUE(ReadTrace(path_)->sections[0].closed);
}

// The file of a killed process was cut while it was copied. Before, its ring had replaced 872 records.
TEST_F(RecordedFile, DamageOfACutFileLeavesOutReplacedRecords) {
  {
    auto recorder =
        Recorder::Open({.path = path_, .records_per_thread = 128, .rank = 1, .world = 2, .library = "NCCL"});
    ASSERT_TRUE(recorder);
    for (uint64_t n = 0; n < 1000; ++n)
      (*recorder)->Append(EmptyRecord(RecordKind::kStep, static_cast<int64_t>(n)));
  }
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 4096);
  const auto salvaged = ReadTrace(path_, TraceReading::kSalvage);
  ASSERT_TRUE(salvaged) << salvaged.error().message;
  const TraceSection& section = salvaged->sections.at(0);
  EXPECT_EQ(section.replaced, 1000u - 128);
  const uint64_t cut = 128 - section.records.size();
  EXPECT_GT(cut, 0u);
  ASSERT_EQ(salvaged->damage.size(), 1u);
  EXPECT_THAT(salvaged->damage[0], HasSubstr(fmt::format("; lost of rank 1: {} record", cut)));
}

TEST_F(RecordedFile, CompactedKeepsEverything) {
  {
    auto recorder =
        Recorder::Open({.path = path_, .records_per_thread = 64, .rank = 0, .world = 1, .library = "NCCL"});
    ASSERT_TRUE(recorder);
    for (uint64_t n = 0; n < 100; ++n)
      (*recorder)->Append(EmptyRecord(RecordKind::kStep, static_cast<int64_t>(n)));
  }
  const auto recorded = ReadTrace(path_);
  ASSERT_TRUE(recorded);
  ASSERT_TRUE(WriteTrace(path_, *recorded));
  EXPECT_EQ(std::filesystem::file_size(path_),
            kTraceHeaderBytes + sizeof(SegmentHeader) + 64 * sizeof(TraceRecord));
  EXPECT_EQ(*ReadTrace(path_), *recorded);
}

TEST_F(RecordedFile, DamagedAnywhereNeverCrashesTheReader) {
  {
    auto recorder = Recorder::Open({.path = path_, .records_per_thread = 64, .library = "NCCL"});
    for (uint64_t n = 0; n < 50; ++n)
      (*recorder)->Append(EmptyRecord(RecordKind::kStep, static_cast<int64_t>(n)));
  }
  std::string content(std::filesystem::file_size(path_), '\0');
  std::ifstream(path_, std::ios::binary).read(content.data(), static_cast<long>(content.size()));
  std::mt19937_64 random(6);
  for (int i = 0; i < 500; ++i) {
    std::string damaged = content;
    for (int flips = 0; flips < 8; ++flips) damaged[random() % 600] = static_cast<char>(random());
    // Damaged fields with a valid checksum, as a hostile file would have.
    const uint64_t checksum = XXH3_64bits(damaged.data(), offsetof(TraceHeader, checksum));
    std::memcpy(damaged.data() + offsetof(TraceHeader, checksum), &checksum, 8);
    const auto bytes = std::as_bytes(std::span(damaged));
    (void)ParseTrace(bytes, "x", TraceReading::kStrict);
    (void)ParseTrace(bytes, "x", TraceReading::kSalvage);
  }
}

}  // namespace
}  // namespace dynamiccl
