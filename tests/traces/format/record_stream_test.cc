// SPDX-License-Identifier: Apache-2.0
#include "traces/format/record_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tests/traces/any_trace.h"
#include "traces/format/json_lines.h"
#include "traces/format/trace_archive.h"
#include "traces/format/trace_files.h"
#include "traces/format/trace_writer.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;

class RecordStream : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "record-stream-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

std::string Content(const std::string& path) {
  return *ReadWholeFile(path);
}

Status Copy(const std::string& from, Result<std::unique_ptr<RecordWriter>> to) {
  if (!to) return tl::unexpected(to.error());
  DYNAMICCL_CHECK_OK(StreamTrace(from, **to));
  return (*to)->Finish();
}

// Copies must equal the records in memory bit for bit.
TEST_F(RecordStream, CopiesEitherFormIntoEither) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Trace trace = AnyTrace(seed);
    ASSERT_TRUE(WriteTrace(Path("a.ctrace"), trace));
    ASSERT_TRUE(Copy(Path("a.ctrace"), CreateArchive(Path("a.ctracez"))));
    ASSERT_TRUE(WriteTraceArchive(Path("b.ctracez"), trace));
    EXPECT_EQ(Content(Path("a.ctracez")), Content(Path("b.ctracez"))) << "seed " << seed;
    ASSERT_TRUE(Copy(Path("a.ctracez"), CreateTrace(Path("b.ctrace"))));
    EXPECT_EQ(Content(Path("a.ctrace")), Content(Path("b.ctrace"))) << "seed " << seed;
    ASSERT_TRUE(Copy(Path("b.ctrace"), CreateTrace(Path("c.ctrace"))));
    EXPECT_EQ(Content(Path("b.ctrace")), Content(Path("c.ctrace")));
  }
}

TEST_F(RecordStream, CutAndDamagedFilesAreErrors) {
  const Trace trace = AnyTrace(4);
  ASSERT_TRUE(WriteTrace(Path("a.ctrace"), trace));
  ASSERT_TRUE(WriteTraceArchive(Path("a.ctracez"), trace));
  for (const std::string name : {"a.ctrace", "a.ctracez"}) {
    const std::string whole = Content(Path(name));
    // A trace that is cut between two sections is a valid, shorter trace.
    std::mt19937_64 random(7);
    for (int i = 0; i < 150; ++i) {
      std::string damaged = whole;
      const size_t at = random() % whole.size();
      if (i % 2 == 0)
        damaged.resize(at);
      else
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
      std::ofstream(Path("damaged"), std::ios::binary) << damaged;
      const auto in_memory = ReadTraceFiles({Path("damaged")});
      const Status streamed = Copy(Path("damaged"), CreateArchive(Path("out.ctracez")));
      if (streamed) {
        ASSERT_TRUE(in_memory) << name << ", byte " << at;
        EXPECT_EQ(*ReadTraceFiles({Path("out.ctracez")}), *in_memory);
      } else if (!in_memory) {
        EXPECT_THAT(streamed.error().message, HasSubstr("byte"));
      }
    }
  }
}

TEST_F(RecordStream, SaysWhatItDoesNotStream) {
  Trace trace = AnyTrace(2);
  ASSERT_TRUE(WriteTraceFile(Path("a.jsonl"), trace));
  EXPECT_EQ(Copy(Path("a.jsonl"), CreateTrace(Path("b.ctrace"))).error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(Copy(Path("none"), CreateTrace(Path("b.ctrace"))).error().kind, ErrorKind::kNotFound);
  EXPECT_FALSE(Copy(Path("a.jsonl"), CreateTrace(Path("no/b.ctrace"))));
}

// ---- memory ----

TraceRecord NthRecord(uint64_t i) {
  IssuedCall issued;
  issued.call.call_number = i;
  issued.call.collective = i % 3 == 0 ? Collective::kReduceScatter : Collective::kAllGather;
  issued.call.bytes = 4096u << (i % 96 / 8);
  issued.issued_ns = static_cast<int64_t>(i * 20'000 + i * 7919 % 4096);
  TraceRecord record = CallRecord(0, issued);
  Seal(record);
  return record;
}

class HashSink final : public RecordSink {
 public:
  HashSink() { XXH3_64bits_reset(&state_); }
  Status BeginSection(const TraceSection&, uint64_t) override { return {}; }
  Status Take(std::span<const TraceRecord> records) override {
    EXPECT_LE(records.size(), kArchiveBlockRecords);
    XXH3_64bits_update(&state_, records.data(), records.size_bytes());
    return {};
  }
  Status EndSection(uint64_t) override { return {}; }
  uint64_t value() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

// The records take twice the memory bound. A reader that kept them all would exceed the bound.
constexpr uint64_t kManyRecords = 2 * kStreamMemory / sizeof(TraceRecord);

Status WriteMany(RecordWriter& writer, RecordSink& same) {
  TraceSection description;
  description.closed = true;
  DYNAMICCL_CHECK_OK(writer.BeginSection(description, kManyRecords));
  std::vector<TraceRecord> some(1000);
  for (uint64_t i = 0; i < kManyRecords;) {
    some.resize(std::min<uint64_t>(1000, kManyRecords - i));
    for (TraceRecord& record : some) record = NthRecord(i++);
    DYNAMICCL_CHECK_OK(writer.Take(some));
    DYNAMICCL_CHECK_OK(same.Take(some));
  }
  DYNAMICCL_CHECK_OK(writer.EndSection(0));
  return writer.Finish();
}

// Returns the peak memory of this process.
size_t PeakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    size_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

// Run this in a child process. It writes the records, copies them into the other form and back, and reads
// them. Exit code 0: the memory stayed within the bound, and all records were right.
int WriteAndReadMany(const std::string& folder) {
  const size_t before = PeakBytes();
  HashSink written, read;
  if (!WriteMany(**CreateArchive(folder + "/a.ctracez"), written)) return 1;
  if (!Copy(folder + "/a.ctracez", CreateTrace(folder + "/a.ctrace"))) return 2;
  if (!Copy(folder + "/a.ctrace", CreateArchive(folder + "/b.ctracez"))) return 3;
  if (!StreamTrace(folder + "/b.ctracez", read)) return 4;
  if (read.value() != written.value()) return 5;
  std::fprintf(stderr, "%zu MB of records in %zu MiB\n", kManyRecords * sizeof(TraceRecord) / 1'000'000,
               (PeakBytes() - before) >> 20);
  return PeakBytes() - before <= kStreamMemory ? 0 : 6;
}

TEST_F(RecordStream, NeedsABlockOfMemoryWhateverTheLength) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory would be measured";
#endif
  const pid_t child = ::fork();
  if (child == 0) ::_exit(WriteAndReadMany(folder_));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace dynamiccl
