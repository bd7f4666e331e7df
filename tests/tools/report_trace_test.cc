// SPDX-License-Identifier: Apache-2.0
#include "tools/report/report_trace.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/traces/any_trace.h"
#include "tools/report/report.h"
#include "traces/format/record_stream.h"
#include "traces/format/trace_archive.h"
#include "traces/format/trace_reader.h"
#include "traces/format/trace_writer.h"

namespace dynamiccl {
namespace {

class ReportTrace : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "report-trace-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

// The page and the JSON of one trace.
std::string ReportOf(const std::string& path, Trace trace) {
  ReportInputs inputs;
  inputs.traces.push_back({path, std::move(trace), ""});
  return RenderReport(inputs) + ReportJson(inputs).dump();
}

TraceRecord NthCall(int rank, uint64_t i) {
  IssuedCall issued;
  issued.call.call_number = i;
  issued.call.collective = i % 3 == 0 ? Collective::kReduceScatter : Collective::kAllGather;
  issued.call.bytes = 4096u << (i % 96 / 8);
  issued.issued_ns = static_cast<int64_t>(i * 20'000 + static_cast<uint64_t>(rank) * 1000);
  issued.duration_ns = 15'000;
  return CallRecord(0, issued);
}

// Returns one rank's records of a job of `ranks` ranks with `calls` calls each. With `decided` the tuner's
// answer follows each call, and a mark every tenth.
std::vector<TraceRecord> RecordsOf(int rank, int ranks, uint64_t calls, bool decided) {
  std::vector<TraceRecord> records;
  records.push_back(CommunicatorRecord(0, {.id = 7, .rank = rank, .n_ranks = ranks, .n_nodes = 1}, 0));
  for (uint64_t i = 0; i < calls; ++i) {
    const TraceRecord call = NthCall(rank, i);
    if (decided && i % 10 == 0)
      records.push_back(StepRecord({.marked_ns = call.issued_ns, .step = i / 10, .phase = Phase::kForward}));
    records.push_back(call);
    if (!decided) continue;
    CollectiveCall question;
    question.call_number = i;
    records.push_back(DecisionRecord(
        0, question, {call.issued_ns + 500, {Algorithm::kRing, Protocol::kLL, 2}, DecidedBy::kPolicy, 1}));
  }
  for (TraceRecord& record : records) Seal(record);
  return records;
}

TraceSection Described(int rank, int ranks) {
  TraceSection section;
  section.rank = rank;
  section.world = ranks;
  section.closed = true;
  section.opened = {0, 1'000'000'000};
  section.closed_at = section.opened;
  return section;
}

// The oracle is the report of the trace that was read as a whole.
TEST_F(ReportTrace, GivesTheReportOfTheWholeTrace) {
  for (const bool decided : {false, true}) {
    Trace trace;
    for (int rank = 0; rank < 12; ++rank) {
      trace.sections.push_back(Described(rank, 12));
      trace.sections.back().records = RecordsOf(rank, 12, 500, decided);
    }
    ASSERT_TRUE(WriteTrace(Path("a.ctrace"), trace));
    ASSERT_TRUE(WriteTraceArchive(Path("a.ctracez"), trace));
    for (const std::string name : {"a.ctrace", "a.ctracez"}) {
      const auto read = ReadTraceForReport(Path(name));
      ASSERT_TRUE(read) << Describe(read.error());
      EXPECT_EQ(ReportOf(Path(name), *read), ReportOf(Path(name), *ReadTrace(Path(name))));
      EXPECT_EQ(read->sections[0], trace.sections[0]);
      EXPECT_LT(read->sections[7].records.size(), 200u);
      EXPECT_GT(read->sections[7].records.size(), 5u);
      EXPECT_TRUE(read->sections[11].records.empty());
    }
  }
}

TEST_F(ReportTrace, AnyBitsGiveTheReportOfTheWholeTrace) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    ASSERT_TRUE(WriteTrace(Path("any.ctrace"), AnyTrace(seed)));
    const auto read = ReadTraceForReport(Path("any.ctrace"));
    ASSERT_TRUE(read) << Describe(read.error());
    EXPECT_EQ(ReportOf("any", *read), ReportOf("any", *ReadTrace(Path("any.ctrace")))) << seed;
  }
}

TEST_F(ReportTrace, DamageIsTheErrorOfTheWholeTrace) {
  ASSERT_TRUE(WriteTrace(Path("a.ctrace"), AnyTrace(4)));
  std::filesystem::resize_file(Path("a.ctrace"), std::filesystem::file_size(Path("a.ctrace")) - 7);
  const auto read = ReadTraceForReport(Path("a.ctrace"));
  ASSERT_FALSE(read);
  EXPECT_EQ(Describe(read.error()), Describe(ReadTrace(Path("a.ctrace")).error()));
}

// ---- memory ----

// Returns the largest resident memory that this process has had so far.
size_t PeakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    size_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

constexpr uint64_t kCalls = 10'000;

// Makes the report of a job of `ranks` ranks in a process of its own. Returns the bytes by which that process
// grows.
size_t MemoryOfReport(const std::string& path, int ranks) {
  const auto writer = CreateTrace(path);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<TraceRecord> records = RecordsOf(rank, ranks, kCalls, false);
    if (!(*writer)->BeginSection(Described(rank, ranks), records.size())) return SIZE_MAX;
    if (!(*writer)->Take(records) || !(*writer)->EndSection(0)) return SIZE_MAX;
  }
  if (!(*writer)->Finish()) return SIZE_MAX;
  const size_t before = PeakBytes();
  const auto read = ReadTraceForReport(path);
  if (!read || ReportOf(path, *read).empty()) return SIZE_MAX;
  return PeakBytes() - before;
}

// 128 ranks have 82 MB of records, and a report takes no more memory for them than a stream and two ranks do.
TEST_F(ReportTrace, MemoryDoesNotGrowWithTheRanks) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory would be measured";
#endif
  constexpr size_t kMost = size_t{32} << 20;
  static_assert(128 * kCalls * sizeof(TraceRecord) > 2 * kMost);
  const pid_t child = ::fork();
  if (child == 0) {
    const size_t bytes = MemoryOfReport(Path("many.ctrace"), 128);
    std::fprintf(stderr, "%zu MiB\n", bytes >> 20);
    ::_exit(bytes <= kMost ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace dynamiccl
