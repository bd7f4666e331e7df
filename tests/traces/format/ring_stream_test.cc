// SPDX-License-Identifier: Apache-2.0
// Reads files of recorders as streams. The records must equal those of ReadTrace.
#include <gtest/gtest.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <filesystem>
#include <fstream>
#include <latch>
#include <random>
#include <thread>
#include <vector>

#include "traces/format/json_lines.h"
#include "traces/format/record_source.h"
#include "traces/format/trace_reader.h"
#include "traces/record/recorder.h"

namespace dynamiccl {
namespace {

class RingStream : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Recorder> Record(uint64_t records_per_thread) {
    auto recorder =
        Recorder::Open({.path = path_, .records_per_thread = records_per_thread, .rank = 1, .world = 2});
    EXPECT_TRUE(recorder);
    return std::move(*recorder);
  }
  // Returns a file as a killed process leaves it: not closed, and not open in any process.
  std::string Killed() {
    std::filesystem::copy_file(path_, killed_, std::filesystem::copy_options::overwrite_existing);
    return killed_;
  }
  static Result<Trace> Streamed(const std::string& path) {
    return ReadTail(FileRecords(path), UINT64_MAX / 4);
  }
  void ExpectStreamedAsRead(const std::string& path) {
    const auto streamed = Streamed(path);
    ASSERT_TRUE(streamed) << streamed.error().message;
    const auto read = ReadTrace(path);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*streamed, *read);
  }

  std::string folder_ = testing::TempDir() + "/ring-stream-" + std::to_string(::getpid());
  std::string path_ = folder_ + "/a.ctrace", killed_ = folder_ + "/killed.ctrace";
};

TraceRecord CallAt(int64_t issued_ns, uint64_t number) {
  TraceRecord record = EmptyRecord(RecordKind::kCollective, issued_ns);
  record.call_number = number;
  return record;
}

TEST_F(RingStream, RecordsOfAllThreadsAreStreamedInTheOrderInWhichTheyAreRead) {
  for (const uint64_t capacity : {64, 1024, 16384}) {
    auto recorder = Record(capacity);
    const auto append = [&](uint64_t seed) {
      std::mt19937_64 random(seed);
      int64_t now = 0;
      for (uint64_t i = 0; i < 5000; ++i) {
        now += static_cast<int64_t>(random() % 3);
        // A call's record comes after the answers to its group.
        recorder->Append(CallAt(now - static_cast<int64_t>(random() % 50), i));
      }
    };
    recorder->Append(CommunicatorRecord(0, {.id = 7, .rank = 1, .n_ranks = 2, .n_nodes = 1}, 10));
    // Each thread lives until all have begun, so that each has its own ring.
    std::latch begun(4);
    std::vector<std::jthread> threads;
    for (uint64_t seed = 1; seed < 5; ++seed)
      threads.emplace_back([&, seed] {
        recorder->Append(CallAt(0, 0));
        begun.arrive_and_wait();
        append(seed);
      });
    threads.clear();
    ExpectStreamedAsRead(Killed());
    recorder.reset();
    ExpectStreamedAsRead(path_);
    const auto streamed = Streamed(path_);
    EXPECT_EQ(streamed->missing().lost, 0u);
    EXPECT_EQ(streamed->missing().replaced > 0, capacity < 16384) << capacity;
  }
}

TEST_F(RingStream, ATornRecordIsLostAndACallThatDidNotReturnIsShown) {
  auto recorder = Record(64);
  for (int64_t i = 0; i < 100; ++i) recorder->Append(CallAt(i, static_cast<uint64_t>(i)));
  InsideMark inside{};
  inside.since_ns = 1000;
  inside.call_number = 100;
  inside.what = static_cast<uint8_t>(InsideOf::kCall);
  recorder->Enter(WordsOf(inside));
  const std::string path = Killed();
  {
    TraceHeader header;
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.read(reinterpret_cast<char*>(&header), sizeof(header));
    file.seekp(static_cast<std::streamoff>(header.first_segment + sizeof(SegmentHeader)) + 3);
    file.put('\x55');
  }
  ExpectStreamedAsRead(path);
  const auto streamed = Streamed(path);
  ASSERT_EQ(streamed->sections[0].records.size(), 64u) << "63 calls and one that did not return";
  EXPECT_EQ(streamed->sections[0].records.back().kind, static_cast<uint16_t>(RecordKind::kInside));
  EXPECT_EQ(streamed->missing().lost, 1u);
  EXPECT_EQ(streamed->missing().replaced, 36u);
}

// The records of such a file may change between two passes. So they must be read at once.
TEST_F(RingStream, AFileThatIsStillWrittenIsNotStreamed) {
  auto recorder = Record(64);
  recorder->Append(CallAt(1, 1));
  EXPECT_EQ(Streamed(path_).error().kind, ErrorKind::kUnsupported);
}

// Overwrites a record of the file after the records were counted.
class TearingSink final : public RecordSink {
 public:
  explicit TearingSink(std::string path) : path_(std::move(path)) {}
  Status BeginSection(const TraceSection& /*description*/, uint64_t /*records*/) override {
    TraceHeader header;
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.read(reinterpret_cast<char*>(&header), sizeof(header));
    file.seekp(static_cast<std::streamoff>(header.first_segment + sizeof(SegmentHeader)) + 3);
    file.put('\x55');
    return {};
  }
  Status Take(std::span<const TraceRecord> /*records*/) override { return {}; }
  Status EndSection(uint64_t /*missing*/) override {
    ended = true;
    return {};
  }
  bool ended = false;

 private:
  std::string path_;
};

TEST_F(RingStream, AFileThatChangesAfterItWasCountedIsNotStreamed) {
  auto recorder = Record(64);
  for (int64_t i = 0; i < 50; ++i) recorder->Append(CallAt(i, static_cast<uint64_t>(i)));
  TearingSink sink(Killed());
  const Status streamed = StreamTrace(killed_, sink);
  ASSERT_FALSE(streamed);
  EXPECT_EQ(streamed.error().kind, ErrorKind::kUnsupported) << streamed.error().message;
  EXPECT_FALSE(sink.ended);
}

TEST_F(RingStream, RecordsInNoOrderAreNotStreamed) {
  auto recorder = Record(1 << 16);
  for (int64_t i = 60'000; i > 0; --i) recorder->Append(CallAt(i, static_cast<uint64_t>(i)));
  EXPECT_EQ(Streamed(Killed()).error().kind, ErrorKind::kUnsupported);
}

TEST_F(RingStream, DamagedAnywhereNeverCrashesTheReader) {
  auto recorder = Record(64);
  for (int64_t i = 0; i < 50; ++i) recorder->Append(CallAt(i, static_cast<uint64_t>(i)));
  recorder.reset();
  const std::string content = *ReadWholeFile(path_);
  std::mt19937_64 random(6);
  for (int i = 0; i < 500; ++i) {
    std::string damaged = content;
    for (int flips = 0; flips < 8; ++flips) damaged[random() % 600] = static_cast<char>(random());
    if (i % 2 == 0) damaged.resize(random() % damaged.size());
    const uint64_t checksum =
        XXH3_64bits(damaged.data(), std::min(damaged.size(), offsetof(TraceHeader, checksum)));
    if (damaged.size() >= kTraceHeaderBytes)
      std::memcpy(damaged.data() + offsetof(TraceHeader, checksum), &checksum, 8);
    std::ofstream(killed_, std::ios::binary) << damaged;
    const auto streamed = Streamed(killed_);
    const auto read = ReadTrace(killed_);
    if (!streamed) continue;
    ASSERT_TRUE(read) << "damage " << i;
    EXPECT_EQ(*streamed, *read) << "damage " << i;
  }
}

}  // namespace
}  // namespace dynamiccl
