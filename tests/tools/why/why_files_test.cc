// SPDX-License-Identifier: Apache-2.0
// Files that `dynamiccl why` reads in passes, and files that do not say everything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/why/timed_job.h"
#include "traces/format/trace_files.h"

namespace dynamiccl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The times of calls in a group whose size nobody states tell no bandwidth.
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

// The records of a .ctrace file are read in passes, those of JSON lines are in memory.
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
  EXPECT_EQ(streamed->streamed, folder.File("t.ctrace"));
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

// The rank can be named only if the whole file of a killed job is read.
TEST(WhyFiles, AFileThatIsReadInPassesNamesTheRankThatStopped) {
  std::vector<TimedCallOfRank> calls(20);
  Trace trace{{SectionOf(0, 2, calls), SectionOf(1, 2, {calls.begin(), calls.end() - 4})}};
  for (TraceSection& section : trace.sections) section.closed = false;
  const Folder folder;
  ASSERT_TRUE(WriteTraceFile(folder.File("t.ctrace"), trace));
  EXPECT_THAT(TextOfFiles({folder.File("t.ctrace")}), HasSubstr("rank 1 did not issue call 16"));
}

}  // namespace
}  // namespace dynamiccl
