// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <sstream>

#include "tests/traces/import/damaged_copies.h"
#include "tests/traces/import/import_data.h"
#include "traces/import/gzip_stream.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;

// ---- real files ----

struct Count {
  std::map<std::string, uint64_t> rows;  // by comm_type
  uint64_t bytes = 0;
  double ms = 0;
  uint64_t timed = 0;
};

// Counts independently of the importer, by the positions that fields have in these files.
Count CountByPosition(const std::string& path) {
  auto stream = GzipStream::Open(path);
  Count count;
  for (std::string line; std::getline(stream->stream(), line);) {
    if (!line.starts_with("CommType.")) continue;
    std::vector<std::string> fields;
    std::istringstream parts(line);
    for (std::string field; std::getline(parts, field, ',');) fields.push_back(field);
    const std::string type = fields[0].substr(9);
    if (type == "epoch_end" || type == "barrier" || fields[3] == "0") continue;
    ++count.rows[type];
    count.bytes += std::stoull(fields[3]);
    if (fields[8] == "None") continue;
    ++count.timed;
    count.ms += std::min(std::stod(fields[8]), 4294.967295);  // longer durations are cut to this
  }
  return count;
}

const char* NameInFile(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return "all_reduce";
    case Collective::kAllGather:
      return "all_gather";
    case Collective::kReduceScatter:
      return "reduce_scatter";
    case Collective::kBroadcast:
      return "broadcast";
    default:
      return "all_to_all";
  }
}

void ExpectImportedWhole(const std::string& path) {
  SCOPED_TRACE(path);
  const Count expected = CountByPosition(path);
  const auto imported = ImportFile(path, "");
  ASSERT_TRUE(imported) << imported.error().message;
  Count count;
  for (const TraceCall& call : CallsOf(imported->trace->sections.at(0)).calls) {
    ++count.rows[NameInFile(call.issued.call.collective)];
    count.bytes += call.issued.call.bytes;
    if (call.issued.duration_ns < 0) continue;
    ++count.timed;
    count.ms += static_cast<double>(call.issued.duration_ns) / 1e6;
  }
  EXPECT_EQ(count.rows, expected.rows);
  EXPECT_EQ(count.bytes, expected.bytes);
  EXPECT_EQ(count.timed, expected.timed);
  EXPECT_NEAR(count.ms, expected.ms, 1e-6 * static_cast<double>(expected.timed + 1));
}

TEST(AicbData, EveryRowOfEveryFileIsThere) {
  DYNAMICCL_NEED_DATA(folder, "aicb");
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".csv.gz") || name.starts_with("Workload_spec")) continue;
    ExpectImportedWhole(entry.path());
    ++files;
  }
  EXPECT_EQ(files, 6u);
}

TEST(AicbData, TheMeasuredRunHasTenSteps) {
  DYNAMICCL_NEED_DATA(path, "aicb/A100_example.csv.gz");
  const auto imported = ImportFile(path, "aicb");
  ASSERT_TRUE(imported) << imported.error().message;
  const SectionCalls calls = CallsOf(imported->trace->sections[0]);
  EXPECT_EQ(calls.calls.size(), 8517u);
  EXPECT_EQ(calls.steps.size(), 10u);
  EXPECT_EQ(CountOf(*imported, "duration"), 0u);
  EXPECT_THAT(imported->notes, testing::ElementsAre("10 rows of 0 bytes: left out"));
}

TEST(AicbData, AListOfModelsIsNoWorkload) {
  DYNAMICCL_NEED_DATA(path, "aicb/Workload_spec_v1.1.csv.gz");
  const auto imported = ImportFile(path, "aicb");
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().message, HasSubstr("line 1: the header has no column 'comm_type'"));
}

// ---- small files ----

constexpr const char* kTable =
    "[rank0 ~ rank7]\n"
    "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count\n"
    "CommType.broadcast,CommGroup.dp_group,4,1000,init,None,2,,None,None,None,1\n"
    "CommType.barrier,CommGroup.all,8,0,init,None,None,,None,None,None,1\n"
    "CommType.epoch_end,None,None,0,,None,None,,None,None,None,1\n"
    "CommType.all_gather,CommGroup.tp_group,2,4096,forward.Column,None,None,overlap,1.5,0,0,1\n"
    "CommType.all_to_all,CommGroup.ep_group,None,4098,backward.MoE,None,None,\"[1, 2]\",0.25,0,0,1\n"
    "CommType.reduce,CommGroup.dp_group,4,64,step,3,None,,2,0,0,1\n"
    "CommType.isend,CommGroup.pp_group,2,8,step,1,None,,None,0,0,1\n"
    "CommType.epoch_end,None,None,0,,None,None,,None,None,None,1\n";

TEST(Aicb, RowsBecomeCalls) {
  const auto imported = ImportText(kTable, "");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->trace->sections[0].world, 8);
  const SectionCalls calls = CallsOf(imported->trace->sections[0]);
  ASSERT_EQ(calls.calls.size(), 5u);
  const IssuedCall& broadcast = calls.calls[0].issued;
  EXPECT_EQ(broadcast.root_or_peer, 2);
  EXPECT_EQ(broadcast.call.n_ranks, 4);
  EXPECT_EQ(broadcast.duration_ns, -1);
  EXPECT_EQ(calls.calls[0].step, -1);
  const IssuedCall& gather = calls.calls[1].issued;
  EXPECT_EQ(gather.call.bytes, 4096u);
  EXPECT_EQ(gather.duration_ns, 1'500'000);
  EXPECT_EQ(gather.labelled_phase, Phase::kForward);
  EXPECT_EQ(calls.calls[1].step, 0);
  EXPECT_EQ(calls.calls[2].issued.call.collective, Collective::kAllToAll);
  EXPECT_EQ(calls.calls[2].issued.call.data_type, DataType::kUint8);
  EXPECT_EQ(calls.calls[2].issued.issued_ns - gather.issued_ns, gather.duration_ns);
  EXPECT_EQ(calls.calls[3].issued.root_or_peer, 3);
  EXPECT_EQ(calls.calls[3].issued.call.call_number, 1u) << "the second on its communicator";
  EXPECT_EQ(calls.calls[4].issued.root_or_peer, 1);
  EXPECT_EQ(CountOf(*imported, "duration"), 2u);
  EXPECT_EQ(CountOf(*imported, "group size"), 1u);
  EXPECT_THAT(imported->notes, testing::Contains(HasSubstr("1 rows 'barrier'")));
}

TEST(Aicb, OlderTablesTellNoGroupSize) {
  const auto imported = ImportText(
      "comm_type,comm_group,msg_size,stage\nCommType.all_reduce,CommGroup.dp_group,8,init.model\n", "");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(CallsOf(imported->trace->sections[0]).calls.size(), 1u);
  EXPECT_EQ(CountOf(*imported, "group size"), 1u);
}

TEST(Aicb, EveryWrongLineIsNamed) {
  const std::string head = "comm_type,comm_group,comm_group_size,msg_size,_elapsed_time,src\n";
  EXPECT_THAT(ErrorOf("", "aicb"), HasSubstr("line 0: no communication"));
  EXPECT_THAT(ErrorOf("[rank]\n", "aicb"), HasSubstr("line 1: '[rank]' does not tell the ranks"));
  EXPECT_THAT(ErrorOf("comm_type,comm_group\n", "aicb"),
              HasSubstr("line 1: the header has no column 'msg_size'"));
  const auto row = [&](const std::string& fields) { return ErrorOf(head + fields + "\n", "aicb"); };
  EXPECT_THAT(row("CommType.all_reduce,g,2,8"), HasSubstr("line 2: 4 fields under 6 columns"));
  EXPECT_THAT(row("all_reduce,g,2,8,1,0"), HasSubstr("'all_reduce' is no CommType"));
  EXPECT_THAT(row("CommType.all_re,g,2,8,1,0"), HasSubstr("no collective 'all_re'"));
  EXPECT_THAT(row("CommType.all_reduce,g,0,8,1,0"), HasSubstr("'comm_group_size' is '0'"));
  EXPECT_THAT(row("CommType.all_reduce,g,2,-8,1,0"), HasSubstr("'msg_size' is '-8'"));
  EXPECT_THAT(row("CommType.broadcast,g,2,8,1,x"), HasSubstr("'x' is not a rank"));
  for (const char* time : {"x", "-1", "nan", "inf", "1e300"}) {
    EXPECT_THAT(row(fmt::format("CommType.all_reduce,g,2,8,{},0", time)), HasSubstr("'_elapsed_time' is '"));
  }
}

TEST(Aicb, ATimeThatDoesNotFitItsBandwidthIsLeftOut) {
  const auto duration = [](const char* ms) {
    const auto imported = ImportText(
        fmt::format("comm_type,comm_group,msg_size,_elapsed_time,algbw\nCommType.all_reduce,g,1048576,{}\n",
                    ms),
        "");
    return imported ? CallsOf(imported->trace->sections[0]).calls.at(0).issued.duration_ns : -2;
  };
  EXPECT_EQ(duration("0.1,10.49"), 100'000) << "GB/s";
  EXPECT_EQ(duration("0.1,9.77"), 100'000) << "GiB/s";
  EXPECT_EQ(duration("0.1,10.0"), 100'000) << "MiB per ms";
  EXPECT_EQ(duration("0.9,10.49"), -1);
  EXPECT_EQ(duration("0.9,None"), 900'000);
}

std::string Calls(std::initializer_list<const char*> rows) {
  std::string table = "comm_type,comm_group,msg_size,_elapsed_time,algbw\n";
  for (const char* const row : rows) table += fmt::format("CommType.all_reduce,CommGroup.dp_group,{}\n", row);
  return table;
}

TEST(Aicb, BandwidthsThatMostTimesContradictCheckNone) {
  const auto imported = ImportText(Calls({"1048576,0.1,83.9", "2097152,0.1,167.8", "1048576,0.2,41.9"}), "");
  ASSERT_TRUE(imported) << imported.error().message;
  const SectionCalls calls = CallsOf(imported->trace->sections[0]);
  EXPECT_EQ(calls.calls.at(0).issued.duration_ns, 100'000);
  EXPECT_EQ(calls.calls.at(2).issued.duration_ns, 200'000);
  EXPECT_THAT(imported->notes, testing::ElementsAre(HasSubstr("3 times that do not fit")));
}

TEST(Aicb, ADamagedTimeDoesNotShiftTheCallsBehindIt) {
  const auto imported = ImportText(
      Calls({"1048576,0.1,10.49", "1048576,9000000,10.49", "1048576,0.1,10.49", "1048576,0.1,10.49"}), "");
  ASSERT_TRUE(imported) << imported.error().message;
  const SectionCalls calls = CallsOf(imported->trace->sections[0]);
  EXPECT_EQ(calls.calls.at(1).issued.duration_ns, -1);
  EXPECT_EQ(calls.calls.at(2).issued.issued_ns - calls.calls[1].issued.issued_ns, 1'000'000);
}

TEST(Aicb, DamagedCopiesNeverCrash) {
  EXPECT_GT(ImportEveryTruncation(kTable, "aicb"), std::string(kTable).size() / 2);
  EXPECT_GT(ImportFlippedCopies(kTable, "aicb", 2000), 500u);
}

TEST(Aicb, TheFirstOfSeveralPipelineStagesIsTaken) {
  const std::string header =
      "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,"
      "count\n";
  const std::string row =
      "CommType.all_reduce,CommGroup.tp_group,2,64,forward.x,None,None,,None,None,None,1\n";
  const std::string send =
      "CommType.isend,CommGroup.pp_group,1,64,forward_step,None,None,send_next,None,None,None,1\n";
  const auto imported = ImportText("[ pp_stage0: [rank0, rank1] ]\n" + header + row + row + send +
                                       "[ pp_stage1: [rank2, rank3] ]\n" + header + row +
                                       "[ pp_stage2: [rank4, rank5] ]\n" + header + row,
                                   "");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(SizeOf(*imported), 3u);
  EXPECT_EQ(imported->trace->sections[0].world, 6);
  EXPECT_TRUE(imported->trace->order_only());
  EXPECT_THAT(imported->notes, testing::Contains(testing::HasSubstr("2 further pipeline stages")));
}

}  // namespace
}  // namespace dynamiccl
