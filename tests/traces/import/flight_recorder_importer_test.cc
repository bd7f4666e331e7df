// SPDX-License-Identifier: Apache-2.0
#include "tests/traces/import/damaged_copies.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;

const std::string kSample = DYNAMICCL_SOURCE_DIR "/traces/samples/flight_recorder_rank_1.json";

SectionCalls Calls(const Result<Imported>& imported) {
  EXPECT_TRUE(imported) << imported.error().message;
  return imported ? CallsOf(imported->trace->sections.at(0)) : SectionCalls();
}

TEST(FlightRecorder, SampleIsTakenFieldByField) {
  const auto imported = ImportFile(kSample, "");
  const SectionCalls calls = Calls(imported);
  ASSERT_EQ(calls.calls.size(), 6u);
  const Collective collectives[] = {Collective::kAllReduce,     Collective::kAllGather,
                                    Collective::kReduceScatter, Collective::kAllReduce,
                                    Collective::kAllReduce,     Collective::kSend};
  const uint64_t bytes[] = {48, 400, 400, 8, 96, 50};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(calls.calls[i].issued.call.collective, collectives[i]) << i;
    EXPECT_EQ(calls.calls[i].issued.call.bytes, bytes[i]) << i;
  }
  EXPECT_EQ(calls.calls[0].issued.issued_ns, 1724779239936775119);
  EXPECT_EQ(calls.calls[5].issued.root_or_peer, 1);
  const TraceSection& section = imported->trace->sections[0];
  EXPECT_EQ(section.rank, 1) << "from the file's name";
  EXPECT_EQ(section.library, "NCCL 2.27.5");
  EXPECT_TRUE(section.mirrored());
  EXPECT_EQ(section.opened.realtime_ns, section.opened.monotonic_ns);
}

TEST(FlightRecorder, OnlyEventTimesAreDurations) {
  const auto imported = ImportFile(kSample, "flight-recorder");
  const SectionCalls calls = Calls(imported);
  ASSERT_EQ(calls.calls.size(), 6u);
  EXPECT_EQ(calls.calls[0].issued.duration_ns, 500'000);
  EXPECT_EQ(calls.calls[1].issued.duration_ns, -1) << "discovered stamps are no duration";
  EXPECT_EQ(calls.calls[2].issued.duration_ns, 250'000);
  EXPECT_EQ(CountOf(*imported, "duration"), 4u);
  EXPECT_EQ(calls.calls[1].duration_source, DurationSource::kNone);
}

TEST(FlightRecorder, GroupsHaveTheirRanksAndCoalescedCallsAreOne) {
  const SectionCalls calls = Calls(ImportFile(kSample, "flight-recorder"));
  ASSERT_EQ(calls.communicators.size(), 2u);
  EXPECT_EQ(calls.communicators.at(0).n_ranks, 2);
  EXPECT_EQ(calls.communicators.at(0).rank, 1);
  EXPECT_EQ(calls.communicators.at(1).n_ranks, 3);
  EXPECT_EQ(calls.communicators.at(1).rank, 0) << "rank 1 is the first of [1, 2, 5]";
  EXPECT_NE(calls.communicators.at(0).id, calls.communicators.at(1).id);
  EXPECT_EQ(calls.calls[3].issued.call.group_size, 2);
  EXPECT_EQ(calls.calls[4].issued.call.index_in_group, 1);
  EXPECT_EQ(calls.calls[3].issued.call.call_number, calls.calls[4].issued.call.call_number);
}

TEST(FlightRecorder, SaysWhatItCannotFill) {
  const auto imported = ImportFile(kSample, "flight-recorder");
  ASSERT_TRUE(imported);
  for (const char* field : {"algorithm", "protocol", "channels", "reduction operator", "role"})
    EXPECT_EQ(CountOf(*imported, field), 6u) << field;
  EXPECT_THAT(imported->notes, testing::Contains(HasSubstr("'nccl:coalesced'")));
  EXPECT_THAT(imported->notes, testing::Contains(HasSubstr("1 call had not ended")));
}

// Returns a dump whose first record has number `first`. Each entry has a name and a collective_seq_id.
std::string DumpFrom(int first, const std::vector<std::pair<const char*, int>>& calls) {
  const std::string entry =
      R"({"record_id": RECORD, "profiling_name": "nccl:NAME", "process_group": ["0", "default_pg"],
          "collective_seq_id": SEQUENCE, "input_sizes": [[3]], "input_dtypes": ["Float"],
          "output_sizes": [[3]], "time_created_ns": RECORD, "state": "completed"})";
  std::string entries;
  for (const auto& [name, sequence] : calls) {
    std::string one = entry;
    for (const auto& [from, to] : {std::pair<std::string, std::string>{"RECORD", std::to_string(first)},
                                   {"RECORD", std::to_string(first)},
                                   {"NAME", name},
                                   {"SEQUENCE", std::to_string(sequence)}})
      one.replace(one.find(from), from.size(), to);
    entries += (entries.empty() ? "" : ", ") + one;
    ++first;
  }
  return R"({"version": "2.5", "entries": [)" + entries + "]}";
}

// In a long job, the buffer keeps only the last calls. They are not the same calls on all ranks.
TEST(FlightRecorder, CallsOfADumpThatLostItsFirstOnesKeepTheirNumbers) {
  const auto imported =
      ImportText(DumpFrom(40, {{"all_reduce", 6}, {"send 1->0", 6}, {"all_to_all", 7}, {"all_reduce", 8}}),
                 "flight-recorder", "trace_rank_1");
  const SectionCalls read = Calls(imported);
  ASSERT_EQ(read.calls.size(), 4u);
  const uint64_t numbers[] = {5, 6, 6, 7};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(read.calls[i].issued.call.call_number, numbers[i]) << i;
  EXPECT_EQ(imported->trace->sections[0].replaced, 40u);
  EXPECT_THAT(imported->notes, testing::Contains(HasSubstr("40 earlier records replaced by newer ones")));
}

TEST(FlightRecorder, CallsOfADumpThatIsNotFullHaveTheSameNumbers) {
  const auto imported =
      ImportText(DumpFrom(0, {{"send 1->0", 0}, {"all_reduce", 1}, {"all_to_all", 2}, {"all_reduce", 3}}),
                 "flight-recorder", "trace_rank_1");
  const SectionCalls read = Calls(imported);
  ASSERT_EQ(read.calls.size(), 4u);
  const uint64_t numbers[] = {0, 0, 1, 2};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(read.calls[i].issued.call.call_number, numbers[i]) << i;
  EXPECT_EQ(imported->trace->sections[0].replaced, 0u);
}

// With TORCH_INCLUDE_ONLY_ACTIVE=1, a dump lacks calls that ended, although it has earlier ones that have not
// ended.
TEST(FlightRecorder, RecordsThatADumpLeavesOutInBetweenAreLost) {
  std::string dump = DumpFrom(40, {{"all_reduce", 6}, {"all_reduce", 7}});
  dump.replace(dump.find("\"record_id\": 41"), 15, "\"record_id\": 44");
  const auto imported = ImportText(dump, "flight-recorder", "trace_rank_1");
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->trace->sections[0].replaced, 40u);
  EXPECT_EQ(imported->trace->sections[0].lost, 43u);
}

TEST(FlightRecorder, EveryVersionOfTwoAndNoOther) {
  const std::string text = ContentOf(kSample);
  for (const std::string version : {"2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "1.5", "3.0", ""}) {
    std::string other = text;
    other.replace(other.find("\"2.10\""), 6, "\"" + version + "\"");
    EXPECT_EQ(ErrorOf(other, "flight-recorder") == "no error", version.starts_with("2.")) << version;
  }
}

TEST(FlightRecorder, OtherBackendsAreLeftOut) {
  std::string text = ContentOf(kSample);
  text.replace(text.find("nccl:all_reduce"), 15, "gloo:all_reduce");
  const auto imported = ImportText(text, "flight-recorder", "trace_rank_1");
  EXPECT_EQ(Calls(imported).calls.size(), 5u);
  EXPECT_THAT(imported->notes, testing::Contains(HasSubstr("'gloo:all_reduce'")));
}

// Tests all names of ProcessGroupNCCL's operations with two prefixes: the backend's name, and "c10d:". The
// latter is the fixed prefix of the recorder's hook (PyTorch's test_c10d_flight_recorder_hook.py).
TEST(FlightRecorder, EveryNameOfTheNccl2BackendAndOfTheHookIsACall) {
  const std::pair<std::string, Collective> named[] = {
      {"all_reduce", Collective::kAllReduce},
      {"allreduce_coalesced", Collective::kAllReduce},
      {"barrier", Collective::kAllReduce},
      {"all_gather", Collective::kAllGather},
      {"_all_gather_base", Collective::kAllGather},
      {"all_gather_into_tensor_coalesced", Collective::kAllGather},
      {"reduce_scatter", Collective::kReduceScatter},
      {"_reduce_scatter_base", Collective::kReduceScatter},
      {"reduce_scatter_tensor_coalesced", Collective::kReduceScatter},
      {"broadcast", Collective::kBroadcast},
      {"reduce", Collective::kReduce},
      {"all_to_all", Collective::kAllToAll},
      {"all_to_all_single", Collective::kAllToAll},
      {"gather", Collective::kGather},
      {"scatter", Collective::kScatter},
      {"batch_op_issue", Collective::kSendRecv},
      {"send 1->0", Collective::kSend},
      {"recv 1<-0", Collective::kRecv}};
  const std::string text = ContentOf(kSample);
  for (const auto& [name, collective] : named) {
    for (const std::string prefix : {"nccl2:", "c10d:"}) {
      std::string other = text;
      other.replace(other.find("nccl:all_reduce"), 15, prefix + name);
      const auto imported = ImportText(other, "flight-recorder", "trace_rank_1");
      const SectionCalls calls = Calls(imported);
      ASSERT_EQ(calls.calls.size(), 6u) << name;
      EXPECT_EQ(calls.calls[0].issued.call.collective, collective) << name;
      EXPECT_EQ(calls.calls[0].issued.call.bytes, 48u) << name;
      EXPECT_EQ(calls.calls[0].issued.duration_ns, prefix == "c10d:" ? -1 : 500'000)
          << "the hook's duration is the host's";
    }
  }
}

TEST(FlightRecorder, AnOperatorOfPyTorchIsNoCallOfTheHook) {
  std::string text = ContentOf(kSample);
  text.replace(text.find("nccl:all_reduce"), 15, "c10d::allreduce");
  EXPECT_EQ(Calls(ImportText(text, "flight-recorder", "trace_rank_1")).calls.size(), 5u);
}

TEST(FlightRecorder, EveryTruncationIsRefused) {
  const std::string text = ContentOf(kSample);
  const size_t end = text.find_last_of('}');  // only a newline follows
  EXPECT_EQ(ImportEveryTruncation(text, "flight-recorder"), end + 1);
}

TEST(FlightRecorder, DamagedCopiesNeverCrash) {
  EXPECT_GT(ImportFlippedCopies(ContentOf(kSample), "flight-recorder", 1000), 100u);
}

}  // namespace
}  // namespace dynamiccl
