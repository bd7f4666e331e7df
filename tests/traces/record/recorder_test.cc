// SPDX-License-Identifier: Apache-2.0
#include "traces/record/recorder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "traces/format/trace_reader.h"

namespace dynamiccl {
namespace {

// The bytes of the file, read without the product's reader.
struct RawTrace {
  std::vector<char> bytes;

  explicit RawTrace(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(stream), {});
  }
  TraceHeader header() const {
    TraceHeader header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    return header;
  }
  SegmentHeader segment(uint32_t index) const {
    SegmentHeader segment;
    std::memcpy(&segment, bytes.data() + header().first_segment + index * header().segment_bytes,
                sizeof(segment));
    return segment;
  }
  TraceRecord record(uint32_t segment, uint64_t position) const {
    const uint64_t index = position % header().records_per_segment;
    const uint64_t start = header().first_segment + segment * header().segment_bytes + sizeof(SegmentHeader);
    TraceRecord record;
    std::memcpy(&record, bytes.data() + start + index * sizeof(TraceRecord), sizeof(record));
    return record;
  }
};

bool Intact(const TraceRecord& record) {
  return record.commit == kCommitMark && record.checksum == XXH32(&record, kChecksummedBytes, 0);
}

// All fields follow from `n`. So a reader can tell a whole record from one that is mixed from two.
TraceRecord Numbered(uint64_t n) {
  TraceRecord record = EmptyRecord(RecordKind::kCollective, static_cast<int64_t>(n));
  record.call_number = n;
  record.bytes = n * 3;
  record.stream = static_cast<uint32_t>(n);
  return record;
}

class RecorderFile : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  std::unique_ptr<Recorder> Open(uint64_t records = 1024) {
    auto opened = Recorder::Open(
        {.path = path_, .records_per_thread = records, .rank = 3, .world = 8, .library = "NCCL 2.28.9"});
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }

  const std::string path_ = testing::TempDir() + fmt::format("recorder_{}.ctrace", ::getpid());
};

TEST_F(RecorderFile, HoldsWhatWasAppended) {
  auto recorder = Open();
  for (uint64_t n = 0; n < 100; ++n) recorder->Append(Numbered(n));
  recorder->Close();
  const RawTrace trace(path_);
  EXPECT_EQ(std::string_view(trace.header().magic, 8), std::string_view(kTraceMagic, 8));
  EXPECT_EQ(trace.header().rank, 3);
  EXPECT_STREQ(trace.header().library, "NCCL 2.28.9");
  EXPECT_EQ(trace.header().closed, 1u);
  EXPECT_EQ(trace.header().lost, 0u);
  EXPECT_GT(trace.header().closed_at.monotonic_ns, trace.header().opened.monotonic_ns);
  ASSERT_EQ(trace.segment(0).head, 100u);
  for (uint64_t n = 0; n < 100; ++n) {
    EXPECT_TRUE(Intact(trace.record(0, n)));
    EXPECT_EQ(trace.record(0, n).bytes, n * 3);
  }
}

TEST_F(RecorderFile, OverwritesTheOldestAndCountsAll) {
  auto recorder = Open(64);
  for (uint64_t n = 0; n < 1000; ++n) recorder->Append(Numbered(n));
  const RawTrace trace(path_);
  ASSERT_EQ(trace.segment(0).head, 1000u);
  for (uint64_t n = 1000 - 64; n < 1000; ++n) EXPECT_EQ(trace.record(0, n).call_number, n);
}

TEST_F(RecorderFile, KeepsCommunicatorsThatARingWouldOverwrite) {
  auto recorder = Open(64);
  recorder->Append(CommunicatorRecord(5, {.id = 77, .rank = 1, .n_ranks = 2, .n_nodes = 1}, 1));
  for (uint64_t n = 0; n < 1000; ++n) recorder->Append(Numbered(n));
  const RawTrace trace(path_);
  TraceRecord record;
  std::memcpy(&record, trace.bytes.data() + kTraceHeaderBytes + sizeof(SegmentHeader), sizeof(record));
  EXPECT_TRUE(Intact(record));
  EXPECT_EQ(record.communicator, 5u);
  EXPECT_EQ(CommunicatorOf(record).id, 77u);
}

TEST_F(RecorderFile, CountsCommunicatorsBeyondTheTable) {
  auto recorder = Open(64);
  for (uint32_t n = 0; n < 5000; ++n) recorder->Append(CommunicatorRecord(n, {.id = n}, 1));
  const TraceHeader header = RawTrace(path_).header();
  EXPECT_EQ(header.lost, 5000 - header.table_records);
}

// The call that a killed process was inside of becomes a record when its trace is read.
TEST_F(RecorderFile, ShowsWhatAThreadIsInsideOf) {
  auto recorder = Open();
  const auto read = [&] {
    const auto trace = ReadTrace(path_);
    EXPECT_TRUE(trace) << trace.error().message;
    return trace->sections[0].records;
  };
  InsideMark mark{};
  mark.since_ns = 200;
  mark.call_number = 7;
  mark.bytes = 4096;
  mark.communicator = 3;
  mark.root_or_peer = -1;
  mark.group_size = 2;
  mark.collective = static_cast<uint8_t>(Collective::kReduceScatter);
  mark.op = static_cast<uint8_t>(ReduceOp::kMax);
  mark.what = static_cast<uint8_t>(InsideOf::kCall);
  recorder->Append(Numbered(100));
  recorder->Enter(WordsOf(mark));
  ASSERT_EQ(read().size(), 2u);
  const InsideView inside = InsideOfRecord(read()[1]);
  EXPECT_EQ(inside.since_ns, 200);
  EXPECT_EQ(inside.call.call_number, 7u);
  EXPECT_EQ(inside.call.bytes, 4096u);
  EXPECT_EQ(inside.communicator, 3u);
  EXPECT_EQ(inside.call.group_size, 2);
  EXPECT_EQ(inside.call.collective, Collective::kReduceScatter);
  EXPECT_EQ(inside.call.op, ReduceOp::kMax);
  EXPECT_TRUE(IsWhole(read()[1]));
  recorder->Leave();
  EXPECT_EQ(read().size(), 1u);
}

TEST_F(RecorderFile, TailHasTheNewestRecordsAndAllCommunicators) {
  auto recorder = Open(1024);
  recorder->Append(CommunicatorRecord(5, {.id = 77, .rank = 1, .n_ranks = 2, .n_nodes = 1}, 0));
  for (uint64_t n = 1; n <= 5000; ++n) recorder->Append(Numbered(n));
  const auto tail = ReadTraceTail(path_, 10);
  ASSERT_TRUE(tail) << tail.error().message;
  const TraceSection& section = tail->sections[0];
  ASSERT_EQ(section.records.size(), 11u);
  EXPECT_EQ(CommunicatorOf(section.records[0]).id, 77u);
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(section.records[1 + i].call_number, 4991 + i);
  EXPECT_EQ(section.lost, 4990u);
  EXPECT_EQ(section.replaced, 5000u - 1024) << "the others are in the file, and were not read";
}

TEST_F(RecorderFile, GivesEachThreadItsOwnRing) {
  auto recorder = Open();
  std::vector<std::jthread> threads;
  std::atomic<int> ready{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      ready.fetch_add(1);
      while (ready.load() < 8) std::this_thread::yield();  // all live at once: no ring is used twice
      for (uint64_t n = 0; n < 500; ++n) recorder->Append(Numbered(n));
      ready.fetch_add(1);
      while (ready.load() < 16) std::this_thread::yield();
    });
  }
  threads.clear();
  const RawTrace trace(path_);
  ASSERT_EQ(trace.header().segments, 8u);
  for (uint32_t t = 0; t < 8; ++t) {
    ASSERT_EQ(trace.segment(t).head, 500u);
    for (uint64_t n = 0; n < 500; ++n) ASSERT_TRUE(Intact(trace.record(t, n)));
  }
}

TEST_F(RecorderFile, ReusesTheRingOfAThreadThatEnded) {
  auto recorder = Open();
  for (uint64_t n = 0; n < 200; ++n) std::thread([&] { recorder->Append(Numbered(n)); }).join();
  const RawTrace trace(path_);
  // A joined thread may not have left the kernel when the next one starts. So there may be a few rings, but
  // not 200.
  EXPECT_LT(trace.header().segments, 8u);
  uint64_t records = 0;
  for (uint32_t t = 0; t < trace.header().segments; ++t) records += trace.segment(t).head;
  EXPECT_EQ(records, 200u);
}

TEST_F(RecorderFile, AddsDurationsUntilTheRecordIsOverwritten) {
  auto recorder = Open(64);
  const auto first = recorder->Append(Numbered(0));
  const auto second = recorder->Append(Numbered(1));
  recorder->SetDuration(second, DurationSource::kEventPair, 1'500);
  EXPECT_EQ(RawTrace(path_).record(0, 1).duration_ns, 1'500u);
  EXPECT_EQ(RawTrace(path_).record(0, 1).duration_source, static_cast<uint8_t>(DurationSource::kEventPair));
  EXPECT_TRUE(Intact(RawTrace(path_).record(0, 1)));
  for (uint64_t n = 2; n < 100; ++n) recorder->Append(Numbered(n));
  recorder->SetDuration(first, DurationSource::kEventPair, 7);
  EXPECT_EQ(RawTrace(path_).record(0, 64).duration_source, 0u);
  recorder->SetDuration({}, DurationSource::kEventPair, 7);
}

TEST_F(RecorderFile, LeavesTheFileToTheParentAfterFork) {
  auto recorder = Open();
  recorder->Append(Numbered(0));
  const pid_t child = ::fork();
  if (child == 0) {
    for (uint64_t n = 0; n < 50; ++n) recorder->Append(Numbered(n + 1000));
    recorder->Close();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  recorder->Append(Numbered(1));
  const RawTrace trace(path_);
  EXPECT_EQ(trace.segment(0).head, 2u);
  EXPECT_EQ(trace.header().closed, 0u);
  EXPECT_EQ(trace.header().lost, 0u);
}

// Appends records at full speed until the process is killed. Writes to the pipe once it has begun.
[[noreturn]] void AppendForever(const std::string& path, int pipe) {
  auto recorder = Recorder::Open({.path = path, .records_per_thread = 4096});
  if (!recorder) ::_exit(1);
  for (uint64_t n = 0;; ++n) {
    (*recorder)->Append(Numbered(n));
    if (n == 20'000 && ::write(pipe, "x", 1) != 1) ::_exit(1);
  }
}

TEST_F(RecorderFile, IsReadableAfterSigkillTwentyTimes) {
  for (int run = 0; run < 20; ++run) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) AppendForever(path_, ends[1]);
    char begun = 0;
    ASSERT_EQ(::read(ends[0], &begun, 1), 1);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(ends[0]);
    ::close(ends[1]);
    const RawTrace trace(path_);
    const uint64_t head = trace.segment(0).head;
    ASSERT_GT(head, 20'000u);
    int torn = 0;
    for (uint64_t n = head - 4096; n < head; ++n) {
      const TraceRecord record = trace.record(0, n);
      if (record.commit != kCommitMark) {
        ++torn;
        continue;
      }
      EXPECT_TRUE(Intact(record));
      EXPECT_EQ(record.call_number, n);
      EXPECT_EQ(record.bytes, n * 3);
    }
    EXPECT_LE(torn, 1);
    EXPECT_EQ(trace.header().closed, 0u);
  }
}

TEST(Recorder, SaysWhyTheFileCannotBeCreated) {
  const auto opened = Recorder::Open({.path = "/nonexistent/a.ctrace"});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("/nonexistent/a.ctrace"), std::string::npos);
}

}  // namespace
}  // namespace dynamiccl
