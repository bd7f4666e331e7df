// SPDX-License-Identifier: Apache-2.0
#include "tools/report/run_report.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/traces/any_trace.h"
#include "tools/report/recognised_labels.h"
#include "tools/report/report.h"
#include "traces/format/record_stream.h"
#include "traces/format/trace_archive.h"
#include "traces/format/trace_reader.h"
#include "traces/format/trace_writer.h"

namespace dynamiccl {
namespace {

class ReadRunOfFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "report-trace-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

std::string ReportOf(const ReportInputs& inputs) {
  return RenderReport(inputs) + ReportJson(inputs).dump();
}

// Returns the page and the JSON of a trace in memory. Its labels come from the answers that the job recorded.
std::string ReportOf(const std::string& path, Trace trace) {
  const bool recognised = !trace.sections.empty() && LabelByDecisions(trace.sections.front());
  ReportInputs inputs;
  inputs.traces.push_back({path, std::move(trace), recognised ? kJobsOwnPolicy : ""});
  return ReportOf(inputs);
}

// Returns the same for a file.
std::string ReportOfFile(const std::string& path) {
  const auto inputs = ReadReportInputs({path}, "");
  return inputs ? ReportOf(*inputs) : Describe(inputs.error());
}

TraceRecord NthCall(int rank, uint64_t i) {
  IssuedCall issued;
  issued.call.call_number = i;
  issued.call.collective = i % 3 == 0 ? Collective::kReduceScatter : Collective::kAllGather;
  issued.call.bytes = 4096u << (i % 96 / 8);
  issued.issued_ns = static_cast<int64_t>(i * 20'000 + static_cast<uint64_t>(rank) * 1000);
  TraceRecord record = CallRecord(0, issued);
  record.duration_ns = static_cast<uint32_t>(12'000 + i * 7919 % 6'011);
  record.duration_source = static_cast<uint8_t>(DurationSource::kKernelStamps);
  return record;
}

// Adds a call. With `decided`, the tuner's answer follows the call, and a mark precedes every tenth call.
void AddCall(int rank, uint64_t i, bool decided, std::vector<TraceRecord>& records) {
  const size_t before = records.size();
  const TraceRecord call = NthCall(rank, i);
  if (decided && i % 10 == 0)
    records.push_back(StepRecord({.marked_ns = call.issued_ns, .step = i / 10, .phase = Phase::kForward}));
  records.push_back(call);
  if (decided) {
    CollectiveCall question;
    question.call_number = i;
    records.push_back(DecisionRecord(
        0, question, {call.issued_ns + 500, {Algorithm::kRing, Protocol::kLL, 2}, DecidedBy::kPolicy, 1}));
  }
  for (size_t record = before; record < records.size(); ++record) Seal(records[record]);
}

// Returns one rank's records of a job of `ranks` ranks with `calls` calls each.
std::vector<TraceRecord> RecordsOf(int rank, int ranks, uint64_t calls, bool decided) {
  std::vector<TraceRecord> records;
  records.push_back(CommunicatorRecord(0, {.id = 7, .rank = rank, .n_ranks = ranks, .n_nodes = 1}, 0));
  Seal(records.back());
  for (uint64_t i = 0; i < calls; ++i) AddCall(rank, i, decided, records);
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

// The reference is the report of the trace that was read as a whole.
TEST_F(ReadRunOfFile, GivesTheReportOfTheWholeTrace) {
  for (const bool decided : {false, true}) {
    Trace trace;
    for (int rank = 0; rank < 12; ++rank) {
      trace.sections.push_back(Described(rank, 12));
      trace.sections.back().records = RecordsOf(rank, 12, 500, decided);
    }
    ASSERT_TRUE(WriteTrace(Path("a.ctrace"), trace));
    ASSERT_TRUE(WriteTraceArchive(Path("a.ctracez"), trace));
    for (const std::string name : {"a.ctrace", "a.ctracez"}) {
      EXPECT_EQ(ReportOfFile(Path(name)), ReportOf(Path(name), *ReadTrace(Path(name))));
    }
  }
}

TEST_F(ReadRunOfFile, AnyBitsGiveTheReportOfTheWholeTrace) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    ASSERT_TRUE(WriteTrace(Path("any.ctrace"), AnyTrace(seed)));
    EXPECT_EQ(ReportOfFile(Path("any.ctrace")), ReportOf(Path("any.ctrace"), *ReadTrace(Path("any.ctrace"))))
        << seed;
  }
}

TEST_F(ReadRunOfFile, DamageIsTheErrorOfTheWholeTrace) {
  ASSERT_TRUE(WriteTrace(Path("a.ctrace"), AnyTrace(4)));
  std::filesystem::resize_file(Path("a.ctrace"), std::filesystem::file_size(Path("a.ctrace")) - 7);
  const auto read = ReadReportInputs({Path("a.ctrace")}, "");
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

// Makes the report of a job of `ranks` ranks with `calls` calls each. Returns the bytes by which this process
// grows.
size_t MemoryOfReport(const std::string& path, int ranks, uint64_t calls, bool decided) {
  const auto writer = CreateTrace(path);
  for (int rank = 0; rank < ranks; ++rank) {
    TraceSection description = Described(rank, ranks);
    const uint64_t records = decided ? 1 + 2 * calls + (calls + 9) / 10 : 1 + calls;
    if (!(*writer)->BeginSection(description, records)) return SIZE_MAX;
    std::vector<TraceRecord> block = RecordsOf(rank, ranks, 0, decided);
    for (uint64_t i = 0; i < calls; ++i) {
      AddCall(rank, i, decided, block);
      if (block.size() < 1000 && i + 1 < calls) continue;
      if (!(*writer)->Take(block)) return SIZE_MAX;
      block.clear();
    }
    if (!(*writer)->EndSection(0)) return SIZE_MAX;
  }
  if (!(*writer)->Finish()) return SIZE_MAX;
  const size_t before = PeakBytes();
  const auto read = ReadReportInputs({path}, "");
  if (!read || ReportOf(*read).empty()) return SIZE_MAX;
  return PeakBytes() - before;
}

// Fails if a report in a process of its own takes more than `most` bytes.
void ExpectMemory(const std::string& path, int ranks, uint64_t calls, bool decided, size_t most) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory would be measured";
#endif
  const pid_t child = ::fork();
  if (child == 0) {
    const size_t bytes = MemoryOfReport(path, ranks, calls, decided);
    std::fprintf(stderr, "%zu MiB\n", bytes >> 20);
    ::_exit(bytes <= most ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// 128 ranks have 82 MB of records.
TEST_F(ReadRunOfFile, MemoryDoesNotGrowWithTheRanks) {
  ExpectMemory(Path("many.ctrace"), 128, 10'000, false, size_t{32} << 20);
}

// One rank has 134 MB of records: calls, the answers to them, and marks.
TEST_F(ReadRunOfFile, MemoryDoesNotGrowWithTheCalls) {
  ExpectMemory(Path("long.ctrace"), 1, 1'000'000, true, size_t{48} << 20);
}

}  // namespace
}  // namespace dynamiccl
