// SPDX-License-Identifier: Apache-2.0
#include "studies/agents/timing/timing_run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <span>

#include "src/base/sha256.h"
#include "src/collective/collective.h"
#include "src/collective/data_type.h"
#include "traces/format/trace_writer.h"

namespace dynamiccl::agents {
namespace {

namespace fs = std::filesystem;

// Two ranks with `calls` AllReduces. Rank 1 arrives `late_ns` late, so that rank 0's kernel waits.
Trace TwoRanks(uint64_t calls, uint32_t late_ns) {
  Trace trace;
  for (int rank = 0; rank < 2; ++rank) {
    TraceSection section;
    section.rank = rank;
    section.world = 2;
    TraceRecord made{};
    made.kind = static_cast<uint16_t>(RecordKind::kCommunicator);
    made.bytes = 77;
    made.root_or_peer = static_cast<int16_t>(rank);
    made.index_in_group = 2;
    made.group_size = 2;
    Seal(made);
    section.records.push_back(made);
    for (uint64_t call = 0; call < calls; ++call) {
      TraceRecord record{};
      record.kind = static_cast<uint16_t>(RecordKind::kCollective);
      record.issued_ns = static_cast<int64_t>(1000 * (call + 1));
      record.call_number = call;
      record.bytes = call % 2 == 0 ? 1024 : 4096;
      record.group_size = 1;
      record.root_or_peer = -1;
      record.collective = static_cast<uint8_t>(Collective::kAllReduce);
      record.data_type = static_cast<uint8_t>(DataType::kFloat32);
      record.duration_source = static_cast<uint8_t>(DurationSource::kKernelArrival);
      record.duration_ns = 500 + (rank == 0 ? late_ns : 0);
      Seal(record);
      section.records.push_back(record);
    }
    trace.sections.push_back(std::move(section));
  }
  return trace;
}

TEST(RunOf, TransferIsTheRankThatWaitedLeastAndSkewWhatTheOthersWaited) {
  const TimingRun run = RunOf(TwoRanks(10, 300), 6);
  ASSERT_EQ(run.calls.size(), 10u);
  EXPECT_EQ(run.changed, 6u);
  EXPECT_EQ(run.keys(), 2u);
  for (const TimedCall& call : run.calls) {
    EXPECT_EQ(call.transfer_ns, 500);
    EXPECT_EQ(call.skew_ns, 300);
  }
  EXPECT_EQ(RunOf(TwoRanks(10, 0), -1).changed, 10u);
}

TEST(RunOf, CallsThatARankDidNotTimeAreLeftOut) {
  Trace trace = TwoRanks(10, 0);
  trace.sections[1].records[4].duration_source = 0;
  trace.sections[1].records[4].duration_ns = 0;
  Seal(trace.sections[1].records[4]);
  const TimingRun run = RunOf(trace, 6);
  EXPECT_EQ(run.calls.size(), 9u);
  EXPECT_EQ(run.changed, 5u);
}

class TimingRunFolder : public testing::Test {
 protected:
  TimingRunFolder() {
    std::string made = fs::temp_directory_path() / "dynamiccl-timing-XXXXXX";
    folder_ = ::mkdtemp(made.data());
    const auto written = WriteTrace(folder_ + "/a.ctrace", TwoRanks(8, 100));
    if (!written) ADD_FAILURE() << Describe(written.error());
    Write("degraded", HashOf(Read(folder_ + "/a.ctrace")));
  }
  ~TimingRunFolder() override { fs::remove_all(folder_); }

  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::string HashOf(const std::string& text) {
    return ToHex(Sha256Of(std::as_bytes(std::span(text))));
  }
  void Write(const std::string& event, const std::string& hash) {
    std::string text = "{\"magic\":\"dynamiccl-timing-runs\",\"version\":1}\n";
    text += R"({"trace":"a.ctrace","sha256":")" + hash +
            R"(","fabric":"held-x","ranks":2,"seed":1,"calls":8,"event":")" + event +
            R"(","factor":1.5,"at_call":4,"load":0.5,"seconds":1})" + "\n";
    const std::string end = R"({"end":2,"sha256":")" + HashOf(text) + "\"}\n";
    Put(text + end);
  }
  void Put(const std::string& text) { std::ofstream(folder_ + "/runs.jsonl", std::ios::binary) << text; }

  std::string folder_;
};

TEST_F(TimingRunFolder, IsReadAsItWasWritten) {
  const auto runs = ReadTimingRuns(folder_);
  ASSERT_TRUE(runs) << Describe(runs.error());
  ASSERT_EQ(runs->size(), 1u);
  EXPECT_EQ(runs->front().event, TimingEvent::kDegraded);
  EXPECT_EQ(runs->front().factor, 1.5);
  EXPECT_EQ(runs->front().changed, 4u);
  EXPECT_EQ(runs->front().calls.size(), 8u);
}

// A file that is cut anywhere, or has any changed byte, must give an error. It must not crash the reader or
// give other data.
TEST_F(TimingRunFolder, TruncationAndDamageAreErrors) {
  const std::string whole = Read(folder_ + "/runs.jsonl");
  for (size_t length = 0; length < whole.size(); ++length) {
    Put(whole.substr(0, length));
    EXPECT_FALSE(ReadTimingRuns(folder_)) << length;
  }
  for (size_t i = 0; i < whole.rfind("{\"end\""); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    Put(damaged);
    EXPECT_FALSE(ReadTimingRuns(folder_)) << i;
  }
}

TEST_F(TimingRunFolder, ATraceThatIsNotTheOneNamedIsAnError) {
  std::string trace = Read(folder_ + "/a.ctrace");
  trace[trace.size() / 2] = static_cast<char>(trace[trace.size() / 2] ^ 1);
  std::ofstream(folder_ + "/a.ctrace", std::ios::binary) << trace;
  EXPECT_FALSE(ReadTimingRuns(folder_));
}

TEST_F(TimingRunFolder, AnUnknownEventIsAnError) {
  Write("eclipse", HashOf(Read(folder_ + "/a.ctrace")));
  const auto runs = ReadTimingRuns(folder_);
  ASSERT_FALSE(runs);
  EXPECT_NE(Describe(runs.error()).find("eclipse"), std::string::npos);
}

TEST(ReadTimingRuns, AFolderThatIsNotThereIsNamed) {
  const auto runs = ReadTimingRuns("/nonexistent");
  ASSERT_FALSE(runs);
  EXPECT_NE(Describe(runs.error()).find("/nonexistent"), std::string::npos);
}

}  // namespace
}  // namespace dynamiccl::agents
