// SPDX-License-Identifier: Apache-2.0
// Tests `trace import --group-size N`. Every importer of calls must use N for groups whose size the file does
// not state, and for no others.
#include "tests/traces/import/damaged_copies.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;

constexpr int32_t kStated = 8;

// The same file of one call with and without the size of its group. The call is an AllGather if the format
// has one.
struct SizedFile {
  const char* format;
  const char* name;
  std::string untold;
  std::string of_four;
  // NCCL's total bytes of the AllGather in a group of 8. 0: the call is no AllGather, or the file states the
  // total.
  uint64_t bytes_of_eight = 0;
};

std::string Kineto(const std::string& size) {
  return R"({"schemaVersion":1,"traceEvents":[{"ph":"X","cat":"cpu_op","name":"record_param_comms","tid":1,"ts":1,"dur":2,)"
         R"("args":{"Collective name":"allreduce","dtype":"Float","In msg nelems":64,"Out msg nelems":64)" +
         size + "}}]}";
}

std::string FlightRecorder(const std::string& ranks) {
  return R"({"version":"2.9","pg_config":{"0":{"name":"0","desc":"default_pg","ranks":")" + ranks +
         R"("}},"entries":[{"record_id":1,"pg_id":0,"process_group":["0","default_pg"],"collective_seq_id":1,)"
         R"("p2p_seq_id":0,"op_id":1,"profiling_name":"nccl:all_reduce","time_created_ns":1000000000,)"
         R"("input_sizes":[[1024]],"input_dtypes":["Float"],"output_sizes":[[1024]],"output_dtypes":["Float"],)"
         R"("state":"scheduled","retired":false,"timeout_ms":600000,"is_p2p":false}],"rank":1})";
}

std::string ExecutionTrace(const std::string& size) {
  return R"json({"schema": "1.0.2-chakra.0.0.4", "pid": 7, "nodes": [
    {"id": 3, "name": "## process_group:init ##", "inputs": {"values": ["[{\"pg_name\": \"0\", \"ranks\": [])json" +
         size +
         R"json(}]"], "shapes": [[]], "types": ["String"]}, "outputs": {"values": [], "shapes": [], "types": []},
     "attrs": []},
    {"id": 9, "name": "record_param_comms", "inputs": {"values": [[1,2,0,64,4,"cuda:0"], 5, "0", 1, "allreduce", [],
      []], "shapes": [[64], [], [], [], [], [], []],
      "types": ["Tensor(float)", "Int", "String", "Int", "String", "GenericList[]", "GenericList[]"]},
      "outputs": {"values": [], "shapes": [], "types": []}, "attrs": []}]})json";
}

// The file names rank 3 but does not show the number of ranks.
std::string NcclProfiler() {
  return R"([
{"name": "AllGather", "cat": "COLL", "ph": "b", "id": 2, "pid": 77, "tid": 1, "ts": 3000.0, "args": {"SeqNum": 2, )"
         R"("CommHash": 12464, "Rank": 3, "Count": 400, "Datatype": "ncclInt8", "Algorithm": "PAT", )"
         R"("Protocol": "SIMPLE", "nChannels": 4}},
{"name": "AllGather", "cat": "COLL", "ph": "e", "id": 2, "pid": 77, "tid": 1, "ts": 3010.0},
{}])";
}

// If algbw and busbw are 0, the number of ranks is unknown. busbw : algbw = 3 : 4 means four ranks.
std::string DeepSpeed(const char* busbw, const char* algbw) {
  return fmt::format(
      "[2026-01-01 10:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] comm op: all_gather_into_tensor | "
      "time "
      "(ms): 1.00 | msg size: 64.0 KB | algbw (Gbps): {} | busbw (Gbps): {}\n",
      algbw, busbw);
}

const std::vector<SizedFile>& Files() {
  static const std::vector<SizedFile> files = {
      {"aicb", "w.csv",
       "comm_type,comm_group,msg_size,stage\nCommType.all_gather,CommGroup.dp_group,4096,init.model\n",
       "comm_type,comm_group,comm_group_size,msg_size,stage\n"
       "CommType.all_gather,CommGroup.dp_group,4,4096,init.model\n"},
      {"simai", "micro.txt", "MICRO\n1\nmicro_test\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLREDUCE\t4096\t1\n", ""},
      {"kineto", "k.json", Kineto(""), Kineto(R"(,"Group size":4)")},
      {"flight-recorder", "rank_1.json", FlightRecorder("[]"), FlightRecorder("[0, 1, 2, 3]")},
      {"pytorch-et", "et.json", ExecutionTrace(""), ExecutionTrace(R"(, \"group_size\": 4)")},
      {"nccl-profiler", "p.json", NcclProfiler(), "", kStated * 400},
      {"deepspeed-comms", "ds.log", DeepSpeed("0.00", "0.00"), DeepSpeed("3000.00", "4000.00"),
       kStated * (64 << 10)}};
  return files;
}

int32_t RanksIn(const Imported& imported) {
  return CallsOf(imported.trace->sections.at(0)).communicators.at(0).n_ranks;
}

TEST(GroupSize, IsTakenWhereTheFileStatesNone) {
  for (const SizedFile& file : Files()) {
    SCOPED_TRACE(file.format);
    const auto untold = ImportText(file.untold, file.format, file.name);
    ASSERT_TRUE(untold) << untold.error().message;
    EXPECT_EQ(CountOf(*untold, "group size"), 1u);
    const bool guesses = std::string_view(file.format) == "nccl-profiler";
    EXPECT_EQ(untold->trace->sections.at(0).groups_unknown(), !guesses);
    EXPECT_EQ(RanksIn(*untold), guesses ? 4 : 1);
    const auto stated = ImportText(file.untold, file.format, file.name, {.group_size = kStated});
    ASSERT_TRUE(stated) << stated.error().message;
    EXPECT_FALSE(stated->trace->sections.at(0).groups_unknown());
    EXPECT_EQ(RanksIn(*stated), kStated);
    const auto unfilled = std::ranges::find(stated->unfilled, "group size", &UnfilledField::field);
    ASSERT_NE(unfilled, stated->unfilled.end());
    EXPECT_EQ(unfilled->instead, "8, as stated");
    if (file.bytes_of_eight == 0) continue;
    EXPECT_EQ(CallsOf(stated->trace->sections.at(0)).calls.at(0).issued.call.bytes, file.bytes_of_eight);
  }
}

TEST(GroupSize, IsNotTakenWhereTheFileStatesOne) {
  for (const SizedFile& file : Files()) {
    if (file.of_four.empty()) continue;
    SCOPED_TRACE(file.format);
    const auto told = ImportText(file.of_four, file.format, file.name, {.group_size = kStated});
    ASSERT_TRUE(told) << told.error().message;
    EXPECT_EQ(RanksIn(*told), 4);
    EXPECT_EQ(CountOf(*told, "group size"), 0u) << "`trace import` then says that the option is not used";
  }
}

TEST(GroupSize, CannotBeLessThanTheRanksThatTheFileNames) {
  const auto small = ImportText(NcclProfiler(), "nccl-profiler", "p.json", {.group_size = 3});
  ASSERT_FALSE(small);
  EXPECT_THAT(small.error().message, HasSubstr("it names rank 3 of a group"));
  EXPECT_THAT(small.error().hint, HasSubstr("at least 4"));
}

TEST(GroupSize, OfAProfileCannotBeLessThanItsRankNeeds) {
  std::string text = Kineto("");
  text.insert(1, R"("distributedInfo":{"backend":"nccl","rank":5,"world_size":16},)");
  const auto small = ImportText(text, "kineto", "k.json", {.group_size = 4});
  ASSERT_FALSE(small);
  EXPECT_THAT(small.error().message, HasSubstr("the file names rank 5 of a group"));
  EXPECT_THAT(small.error().hint, HasSubstr("--group-size 6 or more"));
  EXPECT_EQ(RanksIn(*ImportText(text, "kineto", "k.json", {.group_size = 6})), 6);
}

// The profile states the job's number of ranks, but not that of the group.
TEST(GroupSize, OfAProfileIsTheJobsWhereNobodyStatesIt) {
  std::string text = Kineto("");
  text.insert(1, R"("distributedInfo":{"backend":"nccl","rank":0,"world_size":16},)");
  const auto untold = ImportText(text, "kineto");
  ASSERT_TRUE(untold) << untold.error().message;
  EXPECT_EQ(RanksIn(*untold), 16);
  EXPECT_FALSE(untold->trace->sections.at(0).groups_unknown());
  EXPECT_EQ(RanksIn(*ImportText(text, "kineto", "k.json", {.group_size = kStated})), kStated);
}

}  // namespace
}  // namespace dynamiccl
