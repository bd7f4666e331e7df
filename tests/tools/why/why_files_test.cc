// SPDX-License-Identifier: Apache-2.0
// Tests files that `dynamiccl why` reads in passes, and files that omit some facts.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/why/timed_job.h"
#include "tools/why/parts.h"
#include "traces/format/equal_calls.h"
#include "traces/format/trace_files.h"
#include "traces/format/trace_merge.h"
#include "traces/record/recorder.h"

namespace dynamiccl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// If the size of a group is unknown, the times of its calls show no bandwidth.
TEST(WhyFiles, GroupsOfUnknownSizeAreNotOneRank) {
  const Folder folder;
  std::string table =
      "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,"
      "count\n";
  for (int i = 0; i < 4; ++i)
    table += "CommType.all_to_all,CommGroup.ep_group,None,33554432,forward.MoE,None,None,,0.25,135,135,1\n";
  const std::string text = TextOfFiles({folder.Write("w.csv", table)});
  EXPECT_THAT(text,
              AllOf(HasSubstr("AlltoAll of 32M among an unknown number of ranks: 4 calls, median 250 us"),
                    Not(HasSubstr("GB/s"))));
}

// The records of a .ctrace file are read in passes. The records of JSON lines are in memory.
TEST(WhyFiles, AFileThatIsReadInPassesSaysTheSame) {
  std::vector<TimedCallOfRank> early, late;
  for (int64_t i = 0; i < 3 * 5000; ++i) {
    const auto bytes = uint64_t{1 << 20} << (i % 3);
    early.push_back({i * 10 * kMs, (4 + i % 7) * kMs - i, bytes});
    late.push_back({i * 10 * kMs + 3 * kMs, (1 + i % 5) * kMs, bytes});
  }
  const Trace trace{{SectionOf(0, 2, early), SectionOf(1, 2, late)}};
  const Folder folder;
  for (const char* const name : {"t.ctrace", "t.ctracez", "t.jsonl"})
    ASSERT_TRUE(WriteTraceFile(folder.File(name), trace));
  const Result<WhyInput> streamed = ReadWhyFiles({folder.File("t.ctrace")});
  ASSERT_TRUE(streamed) << streamed.error().message;
  EXPECT_NE(streamed->streamed, nullptr);
  EXPECT_TRUE(streamed->trace->sections[0].records.empty());
  const std::string text = TextOfFiles({folder.File("t.jsonl")});
  EXPECT_THAT(text, AllOf(HasSubstr("3 collectives; 5000 steps"), HasSubstr("of 15000 calls"),
                          HasSubstr("AllReduce of 4M among 2 ranks: 5000 calls, median")));
  for (const char* const name : {"t.ctrace", "t.ctracez"}) {
    std::string same = TextOfFiles({folder.File(name)});
    const size_t at = same.find(name);
    EXPECT_EQ(at, text.find("t.jsonl"));
    if (at != std::string::npos) same.replace(at, std::string_view(name).size(), "t.jsonl");
    EXPECT_EQ(same, text);
  }
}

// Each rank has a file, and one of the files is an archive.
TEST(WhyFiles, SeveralFilesThatAreReadInPassesSayWhatOneFileSays) {
  std::vector<TimedCallOfRank> early, late;
  for (int64_t i = 0; i < 3 * 500; ++i) {
    early.push_back({i * 10 * kMs, (4 + i % 7) * kMs - i});
    late.push_back({i * 10 * kMs + 3 * kMs, (1 + i % 5) * kMs});
  }
  Trace first{{SectionOf(0, 2, early)}}, second{{SectionOf(1, 2, late)}};
  second.sections[0].host = "other";
  const Folder folder;
  ASSERT_TRUE(WriteTraceFile(folder.File("one.ctracez"), first));
  ASSERT_TRUE(WriteTraceFile(folder.File("two.ctrace"), second));
  ASSERT_TRUE(WriteTraceFile(folder.File("one.jsonl"), first));
  ASSERT_TRUE(WriteTraceFile(folder.File("two.jsonl"), second));
  const std::vector<std::string> files = {folder.File("two.ctrace"), folder.File("one.ctracez")};
  const Result<WhyInput> input = ReadWhyFiles(files);
  ASSERT_TRUE(input) << input.error().message;
  ASSERT_NE(input->streamed, nullptr);
  for (const TraceSection& section : input->trace->sections) EXPECT_LE(section.records.size(), 1u);
  const std::string text = TextOfFiles(files);
  EXPECT_THAT(text, AllOf(HasSubstr("rank 1 comes last"), HasSubstr("among 2 ranks")));
  EXPECT_EQ(text, TextOfFiles({folder.File("one.jsonl"), folder.File("two.jsonl")}));
}

// Killed ranks leave such files. No process writes to them any more, and their rings have replaced the first
// calls.
TEST(WhyFiles, UnfinishedFilesAreReadInPasses) {
  const Folder folder;
  std::vector<std::string> files;
  for (int32_t rank = 0; rank < 2; ++rank) {
    files.push_back(folder.File(fmt::format("run.ctrace~node.{}.part", rank)));
    auto recorder = Recorder::Open(
        {.path = folder.File("recorded"), .records_per_thread = 1024, .rank = rank, .world = 2});
    ASSERT_TRUE(recorder);
    for (const TraceRecord& record : SectionOf(rank, 2, std::vector<TimedCallOfRank>(2000 - rank)).records)
      (*recorder)->Append(record);
    std::filesystem::copy_file(folder.File("recorded"), files.back());
  }
  const Result<WhyInput> input = ReadWhyFiles(files);
  ASSERT_TRUE(input) << input.error().message;
  EXPECT_NE(input->streamed, nullptr);
  EXPECT_THAT(TextOfFiles(files),
              AllOf(HasSubstr("rank 1 did not issue call 1999"),
                    HasSubstr("1951 records replaced by newer ones (DYNAMICCL_TRACE_RECORDS")));
}

// One file was cut. In the other, a full ring replaced records.
TEST(WhyFiles, LostAndReplacedRecordsAreCountedApart) {
  Trace first{{SectionOf(0, 2, std::vector<TimedCallOfRank>(20))}};
  Trace second{{SectionOf(1, 2, std::vector<TimedCallOfRank>(20))}};
  second.sections[0].lost = 12;
  second.sections[0].replaced = 5;
  const Folder folder;
  ASSERT_TRUE(WriteTraceFile(folder.File("one.ctrace"), first));
  ASSERT_TRUE(WriteTraceFile(folder.File("two.ctrace"), second));
  const std::vector<std::string> files = {folder.File("one.ctrace"), folder.File("two.ctrace")};
  EXPECT_THAT(TextOfFiles(files),
              AllOf(HasSubstr("7 records lost: damaged"), HasSubstr("5 records replaced by")));
  std::filesystem::resize_file(files[0], std::filesystem::file_size(files[0]) - 100);
  EXPECT_THAT(TextOfFiles(files), AllOf(HasSubstr("Part of a file is lost: "), HasSubstr("9 records lost: "),
                                        HasSubstr("5 records replaced by")));
}

// A long job's early calls are not in memory when its ranks are compared.
TEST(WhyFiles, ADifferenceLongBeforeTheEndIsNamed) {
  constexpr size_t kCalls = 300'000;
  std::vector<TimedCallOfRank> calls(kCalls), other(kCalls);
  for (size_t i = 0; i < kCalls; ++i) calls[i].issued_ns = other[i].issued_ns = static_cast<int64_t>(i);
  other[1000].bytes = 64;
  const Folder folder;
  ASSERT_TRUE(WriteTraceFile(folder.File("t.ctrace"), {{SectionOf(0, 2, calls), SectionOf(1, 2, other)}}));
  EXPECT_THAT(
      TextOfFiles({folder.File("t.ctrace")}),
      HasSubstr("call 1000: rank 0 issued AllReduce of 1M (float, sum), rank 1 issued AllReduce of 64"));
}

// Returns a rank of a pipeline that runs until it is killed. In every step, rank 0 sends to rank 1, or rank 1
// receives from rank 0.
TraceSection PartOfPipeline(int32_t rank, size_t transfers, uint64_t bytes_of_last) {
  const Collective way = rank == 0 ? Collective::kSend : Collective::kRecv;
  std::vector<TimedCallOfRank> calls(transfers, {.collective = way});
  for (size_t i = 0; i < transfers; ++i) calls[i].issued_ns = static_cast<int64_t>(i);
  calls.back().bytes = bytes_of_last;
  TraceSection section = SectionOf(rank, 2, calls);
  section.closed = false;
  for (TraceRecord& record : section.records) {
    if (record.kind != static_cast<uint16_t>(RecordKind::kPointToPoint)) continue;
    record.root_or_peer = static_cast<int16_t>(1 - rank);
    Seal(record);
  }
  // Rank 0 marks steps, so the first call in memory differs between the ranks.
  for (int64_t i = 0; rank == 0 && i < 1000; ++i) {
    TraceRecord mark = StepRecord({.marked_ns = static_cast<int64_t>(transfers) + i});
    Seal(mark);
    section.records.push_back(mark);
  }
  return section;
}

// A long job's early sends and receives are not in memory when they are matched.
TEST(WhyFiles, ASendWithoutItsReceiveIsNamedAtTheEndOfALongJob) {
  constexpr size_t kTransfers = 300'000;
  const Folder folder;
  const std::string file = folder.File("t.ctrace");
  ASSERT_TRUE(WriteTraceFile(
      file, {{PartOfPipeline(0, kTransfers, 1 << 20), PartOfPipeline(1, kTransfers - 1, 1 << 20)}}));
  EXPECT_THAT(TextOfFiles({file}), AllOf(HasSubstr("rank 0 sent 1M to rank 1, which did not receive it"),
                                         HasSubstr("300000 sends, 299999 receives between them")));
  ASSERT_TRUE(
      WriteTraceFile(file, {{PartOfPipeline(0, kTransfers, 1 << 20), PartOfPipeline(1, kTransfers, 64)}}));
  EXPECT_THAT(TextOfFiles({file}), HasSubstr("transfer 299999 from rank 0 to rank 1: sent 1M, received 64"));
}

TEST(WhyFiles, AFileThatHoldsAProcessTwiceIsAnError) {
  const Folder folder;
  const std::string file = folder.File("t.ctrace");
  const TraceSection section = SectionOf(0, 2, {{0, kMs}});
  ASSERT_TRUE(WriteTraceFile(file, {{section, section}}));
  const auto input = ReadWhyFiles({file});
  ASSERT_FALSE(input);
  EXPECT_THAT(input.error().message, HasSubstr("t.ctrace: process 100 (rank 0) stands in it twice"));
}

// If earlier records are missing, the position of a send among the rank's sends is unknown.
TEST(WhyFiles, SendsOfARankThatLostRecordsAreSaidToBeUnmatched) {
  const Folder folder;
  const std::string file = folder.File("t.ctrace");
  Trace trace{{PartOfPipeline(0, 50, 1 << 20), PartOfPipeline(1, 40, 1 << 20)}};
  EXPECT_THAT(TextOf({{}, trace, {}, {}, false}), HasSubstr("which did not receive it"));
  trace.sections[1].lost = trace.sections[1].replaced = 10;
  EXPECT_THAT(
      TextOf({{}, trace, {}, {}, false}),
      AllOf(Not(HasSubstr("did not receive")), HasSubstr("Whether the sends and receives of rank 1 match"),
            HasSubstr("DYNAMICCL_TRACE_RECORDS set above")));
  ASSERT_TRUE(WriteTraceFile(file, trace));
  EXPECT_THAT(TextOfFiles({file}), HasSubstr("Whether the sends and receives of rank 1 match"));
}

// Records of a trace that can be read only a few times, as if the file were replaced after that.
class ReadableFewTimes final : public RecordSource {
 public:
  ReadableFewTimes(Trace trace, int times) : records_(std::move(trace)), left_(times) {}
  Status Pass(RecordSink& sink) const override {
    if (left_-- <= 0) return MakeError(ErrorKind::kUnavailable, "the file was replaced");
    return records_.Pass(sink);
  }

 private:
  OwnedRecords records_;
  mutable int left_;
};

// The error must not look like a fault of the ranks.
TEST(WhyFiles, AFileThatChangesWhileRanksAreComparedIsAnError) {
  constexpr size_t kCalls = 300'000;
  std::vector<TimedCallOfRank> calls(kCalls), other(kCalls);
  other[1000].bytes = 64;
  WhyInput input;
  const Trace trace{{SectionOf(0, 2, calls), SectionOf(1, 2, other)}};
  input.trace = trace;
  for (TraceSection& section : input.trace->sections) section.records.clear();
  for (int times = 0; times < 5; ++times) {
    input.streamed = std::make_unique<const ReadableFewTimes>(trace, times);
    const auto trouble = TroubleOf(input);
    ASSERT_FALSE(trouble) << trouble->lines.front();
    EXPECT_EQ(trouble.error().message, "the file was replaced");
  }
  input.streamed = std::make_unique<const ReadableFewTimes>(trace, 20);
  const auto trouble = TroubleOf(input);
  ASSERT_TRUE(trouble);
  EXPECT_THAT(trouble->lines.front(), HasSubstr("call 1000: rank 0 issued"));
}

// The rank that stopped can be named only if the whole file of a killed job is read.
TEST(WhyFiles, AFileThatIsReadInPassesNamesTheRankThatStopped) {
  std::vector<TimedCallOfRank> calls(20);
  Trace trace{{SectionOf(0, 2, calls), SectionOf(1, 2, {calls.begin(), calls.end() - 4})}};
  for (TraceSection& section : trace.sections) section.closed = false;
  const Folder folder;
  ASSERT_TRUE(WriteTraceFile(folder.File("t.ctrace"), trace));
  EXPECT_THAT(TextOfFiles({folder.File("t.ctrace")}), HasSubstr("rank 1 did not issue call 16"));
}

// Writes the dump of a rank of two whose buffer keeps the calls from number `first` on, up to `last`. Every
// fourth call is an AllToAll, and of every fourth one the name is unknown. `odd` is a call of another size.
std::string WriteDump(const Folder& folder, int rank, int first, int last, int odd = 0) {
  std::string entries;
  for (int i = first; i <= last; ++i) {
    entries += fmt::format(
        R"({}{{"record_id":{},"process_group":["0","default_pg"],"collective_seq_id":{},)"
        R"("profiling_name":"nccl:{}","time_created_ns":{},"input_sizes":[[{}]],"input_dtypes":["Float"],)"
        R"("output_sizes":[[1024]],"output_dtypes":["Float"],"state":"completed"}})",
        entries.empty() ? "" : ",", i - 1, i,
        i % 4 == 0   ? "all_to_all"
        : i % 4 == 2 ? "_broadcast_oop"
                     : "all_reduce",
        1'000'000'000'000'000'000 + i * kMs, i == odd ? 512 : 1024 * (1 + i % 8));
  }
  return folder.Write(fmt::format("rank_{}.json", rank),
                      fmt::format(R"({{"version":"2.9","pg_config":{{"0":{{"ranks":"[0, 1]"}}}},)"
                                  R"("entries":[{}]}})",
                                  entries));
}

TEST(WhyFiles, AFullDumpAndOneThatIsNotFullNumberCallsAlike) {
  const Folder folder;
  const std::vector<std::string> alike = {WriteDump(folder, 0, 1, 41), WriteDump(folder, 1, 20, 41)};
  EXPECT_THAT(TextOfFiles(alike), Not(HasSubstr("What is wrong")));
  const std::vector<std::string> behind = {WriteDump(folder, 0, 1, 41), WriteDump(folder, 1, 20, 37)};
  EXPECT_THAT(TextOfFiles(behind),
              AllOf(HasSubstr("rank 1 did not issue call 38: AllReduce"), HasSubstr("issued up to call 40")))
      << "the import left out call 37";
}

TEST(WhyFiles, CallsOfFullDumpsAreComparedOverNumbersThatTheImportLeftOut) {
  const Folder folder;
  const std::vector<std::string> paths = {WriteDump(folder, 0, 10, 41), WriteDump(folder, 1, 20, 41, 25)};
  const Result<WhyInput> input = ReadWhyFiles(paths);
  ASSERT_TRUE(input) << input.error().message;
  const Trace trace = *ReadTail(*input->streamed, 100);
  const Status agree = CheckRanksAgree(trace);
  ASSERT_FALSE(agree);
  EXPECT_THAT(agree.error().message, HasSubstr("call 24: rank 0 issued AllReduce of 8K"));
  const auto streamed = CompareRanks(*input->streamed);
  ASSERT_TRUE(streamed);
  ASSERT_FALSE(*streamed);
  EXPECT_EQ(streamed->error().message, agree.error().message);
}

}  // namespace
}  // namespace dynamiccl
