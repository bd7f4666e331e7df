// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/traces/import/damaged_copies.h"
#include "tests/traces/import/import_data.h"
#include "traces/format/measurement_file.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;

struct Row {
  uint64_t bytes;
  std::string out_of_place;
};

// An independent count. Rows are lines that begin with a size and a number of elements, after srun's tag. The
// time is counted from the right: it is the first of the out-of-place block's four values, before the
// in-place block (time, algbw, busbw, error).
std::vector<Row> RowsByPattern(const std::string& path) {
  auto stream = GzipStream::Open(path);
  static const std::regex pattern(
      R"(^(?: *\d+: )?\s*(\d+)\s+\d+\s+(?:float|half|int8|double)\s.*?([\d.]+)\s+[\d.]+\s+[\d.]+\s+(?:N/A|[\d.e+-]+)\s+[\d.]+\s+[\d.]+\s+[\d.]+\s+(?:N/A|[\d.e+-]+)\s*$)");
  std::vector<Row> rows;
  std::smatch match;
  for (std::string line; std::getline(stream->stream(), line);) {
    if (std::regex_match(line, match, pattern) && match[1] != "0")
      rows.push_back({std::stoull(match[1]), match[2]});
  }
  return rows;
}

void ExpectImportedAs(const std::string& path, Collective collective, int ranks, int nodes) {
  const std::vector<Row> expected = RowsByPattern(path);
  ASSERT_GT(expected.size(), 20u);
  const auto imported = ImportFile(path, "");
  ASSERT_TRUE(imported) << imported.error().message;
  const MeasurementFile& file = *imported->measurements;
  ASSERT_EQ(file.rows.size(), 2 * expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const Measurement& row = file.rows[2 * i];
    EXPECT_EQ(row.bytes, expected[i].bytes);
    EXPECT_EQ(row.microseconds, std::vector<float>{std::stof(expected[i].out_of_place)});
    EXPECT_EQ(row.collective, collective);
    EXPECT_TRUE(row.config.leaves_nccl_alone());
    EXPECT_TRUE(row.is_default);
    EXPECT_NE(row.topology, file.rows[2 * i + 1].topology);
  }
  ASSERT_EQ(file.contexts.size(), 2u);
  EXPECT_EQ(file.contexts[0].model.fabric.n_ranks, ranks);
  EXPECT_EQ(file.contexts[0].model.fabric.n_nodes, nodes);
  const auto text = FormatMeasurements(file);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*ParseMeasurements(*text, "x"), file);
}

TEST(NcclTestsData, SuperbenchOfAllGenerationsOfColumns) {
  const std::pair<const char*, Collective> files[] = {
      {"allgather", Collective::kAllGather}, {"allreduce", Collective::kAllReduce},
      {"alltoall", Collective::kAllToAll},   {"broadcast", Collective::kBroadcast},
      {"reduce", Collective::kReduce},       {"reducescatter", Collective::kReduceScatter}};
  for (const auto& [name, collective] : files) {
    DYNAMICCL_NEED_DATA(path, fmt::format("superbench-a100/nccl_{}.log", name));
    SCOPED_TRACE(path);
    ExpectImportedAs(path, collective, 8, 1);
  }
}

TEST(NcclTestsData, AlpsWithSrunTags) {
  const std::tuple<const char*, int, int> files[] = {{"job-n-00004-N-0001-142995", 4, 1},
                                                     {"job-n-00016-N-0004-142997", 16, 4},
                                                     {"job-n-00064-N-0016-142999", 64, 16}};
  for (const auto& [name, ranks, nodes] : files) {
    DYNAMICCL_NEED_DATA(path, fmt::format("alps-gh200/raw/{}.out.gz", name));
    SCOPED_TRACE(path);
    ExpectImportedAs(path, Collective::kAllReduce, ranks, nodes);
  }
}

// ---- small files ----

constexpr const char* kHead =
    "mpirun -np 2 ./build/all_reduce_perf -b 8 -e 16\n"
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 16\n"
    "#  Rank  0 Group  0 Pid 1 on  a device  0 [0x01] NVIDIA H100\n"
    "#  Rank  1 Group  0 Pid 2 on  b device  0 [0x01] NVIDIA H100\n"
    "#\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "
    "busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  "
    "(GB/s)\n";
constexpr const char* kRow =
    "           8             2     float     sum      -1     7.84    0.00    0.00      0     8.05    0.00   "
    " 0.00      0\n";

Result<Imported> ImportOutput(const std::string& text) {
  return ImportText(text, "nccl-tests");
}

TEST(NcclTests, StripsTagsOfOpenMpiAlsoInTheMiddle) {
  std::string tagged = "[1,0]<stdout>:" + std::string(kRow);
  tagged.insert(40, "[1,0]<stdout>:");
  const auto imported = ImportOutput(kHead + tagged + "host:1:2 [0] NCCL INFO comm 0x1\n" + kRow);
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->measurements->rows.size(), 4u);
  EXPECT_EQ(imported->measurements->rows[0].microseconds, std::vector<float>{7.84f});
  EXPECT_EQ(imported->measurements->rows[1].microseconds, std::vector<float>{8.05f});
  EXPECT_EQ(imported->measurements->machine, "NVIDIA H100");
  EXPECT_EQ(imported->measurements->contexts[0].model.fabric.n_nodes, 2);
}

TEST(NcclTests, FindsColumnsByWhereValuesEnd) {
  std::string blank = kRow;
  blank.replace(blank.find("sum"), 3, "   ");
  const auto imported = ImportOutput(kHead + blank);
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->measurements->rows.at(0).microseconds, std::vector<float>{7.84f});
}

TEST(NcclTests, TakesMoreThanOneTable) {
  std::string second = std::string(kHead) + kRow;
  second.replace(second.find("all_reduce"), 10, "broadcast");
  const auto imported = ImportOutput(kHead + std::string(kRow) + second);
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->measurements->rows.at(0).collective, Collective::kAllReduce);
  EXPECT_EQ(imported->measurements->rows.at(2).collective, Collective::kBroadcast);
  EXPECT_EQ(imported->measurements->contexts.size(), 4u);
}

TEST(NcclTests, ErrorsSayTheLine) {
  EXPECT_THAT(ImportOutput("").error().message, HasSubstr("no row of results"));
  EXPECT_THAT(ImportOutput(std::string(kHead) + "  8 2 float\n").error().message, HasSubstr("no row"));
  EXPECT_THAT(ImportOutput(std::string(kHead) + "  8 2 float sum 3\n").error().message, HasSubstr("line 8:"));
  std::string no_ranks = std::string(kHead) + kRow;
  no_ranks.erase(no_ranks.find("#  Rank  0"), no_ranks.find("#\n") - no_ranks.find("#  Rank  0"));
  EXPECT_THAT(ImportOutput(no_ranks).error().message, HasSubstr("number of ranks"));
}

TEST(NcclTests, DamagedTextNeverCrashes) {
  const std::string text = kHead + std::string(kRow) + kRow;
  EXPECT_GT(ImportEveryTruncation(text, "nccl-tests"), 200u);
  EXPECT_GT(ImportFlippedCopies(text, "nccl-tests", 1000), 10u);
}

// ---- rccl-tests and other tables ----

// An independent count by the positions of fields. It has the times of all rows whose bytes are not 0.
struct TableCount {
  size_t times = 0;
  double microseconds = 0;
};
TableCount CountTable(const std::string& path, size_t bytes_at, std::initializer_list<size_t> times_at) {
  auto stream = GzipStream::Open(path);
  TableCount count;
  std::string line;
  std::getline(stream->stream(), line);
  while (std::getline(stream->stream(), line)) {
    std::vector<std::string> fields;
    std::istringstream parts(line);
    for (std::string field; std::getline(parts, field, ',');) fields.push_back(field);
    if (fields.at(bytes_at) == "0") continue;
    for (const size_t at : times_at) {
      if (fields.at(at).empty()) continue;
      ++count.times;
      count.microseconds += std::stof(fields[at]);
    }
  }
  return count;
}

void ExpectTable(const std::string& path, const TableCount& expected) {
  const auto imported = ImportFile(path, "");
  ASSERT_TRUE(imported) << imported.error().message;
  TableCount count;
  for (const Measurement& row : imported->measurements->rows) {
    count.times += row.microseconds.size();
    for (const float time : row.microseconds) count.microseconds += time;
  }
  EXPECT_EQ(count.times, expected.times);
  EXPECT_NEAR(count.microseconds, expected.microseconds, 1e-6 * expected.microseconds);
  const auto text = FormatMeasurements(*imported->measurements);
  ASSERT_TRUE(text) << text.error().message;
}

TEST(NcclTestsData, TheUnifiedTableAndTheOneOfAlps) {
  DYNAMICCL_NEED_DATA(unified, "unified/nccl_tests_unified.csv.gz");
  DYNAMICCL_NEED_DATA(alps, "alps-gh200/alps_gh200_nccl_tests.csv");
  const TableCount all = CountTable(unified, 9, {14, 17});
  EXPECT_GT(all.times, 8000u);
  ExpectTable(unified, all);
  ExpectTable(alps, CountTable(alps, 7, {12, 16}));
}

TEST(NcclTestsData, TextOfRcclTests) {
  DYNAMICCL_NEED_DATA(folder, "amd-mi355x");
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.path().string().ends_with("command_output.log.gz")) continue;
    SCOPED_TRACE(entry.path());
    const std::vector<Row> expected = RowsByPattern(entry.path());
    const auto imported = ImportFile(entry.path(), "");
    if (expected.empty()) {
      EXPECT_FALSE(imported);
      continue;
    }
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_EQ(imported->measurements->rows.size(), 2 * expected.size());
    ++files;
  }
  EXPECT_GE(files, 13u);
}

constexpr const char* kRcclTable =
    "numCycle,collective,gpus,size,type,redop,inplace,time,algbw,busbw,#wrong\n"
    "0,AllReduce,8,1024,float,sum,0,15.5,0.1,0.2,0\n"
    "0,AllReduce,8,1024,float,sum,1,14.5,0.1,0.2,0\n"
    "1,AllReduce,8,1024,float,sum,0,16.5,0.1,0.2,0\n"
    "0,AllGather,8,0,float,none,0,0.1,0,0,0\n"
    "0,AllGather,8,2048,float,none,0,N/A,0,0,0\n";

TEST(NcclTests, CyclesOfRcclTestsBecomeRepeats) {
  const auto imported = ImportText(kRcclTable, "", "mi300.csv");
  ASSERT_TRUE(imported) << imported.error().message;
  const MeasurementFile& file = *imported->measurements;
  ASSERT_EQ(file.rows.size(), 2u);
  EXPECT_EQ(file.rows[0].microseconds, (std::vector<float>{15.5F, 16.5F}));
  EXPECT_EQ(file.rows[1].topology, "mi300 1 x8 in-place");
  EXPECT_EQ(file.contexts[0].model.fabric.n_ranks, 8);
  EXPECT_THAT(imported->notes, testing::SizeIs(2));
}

TEST(NcclTests, TablesNameTheWrongLine) {
  const std::string head = "coll,ranks,nodes,bytes,oop_us\n";
  const auto error = [&](const std::string& row) { return ErrorOf(head + row + "\n", "nccl-tests"); };
  EXPECT_THAT(error("all_reduce,4,1,8"), HasSubstr("line 2: 4 fields under 5 columns"));
  EXPECT_THAT(error("all_redo,4,1,8,1"), HasSubstr("line 2: no collective 'all_redo'"));
  EXPECT_THAT(error("all_reduce,x,1,8,1"), HasSubstr("line 2: 'x' is not a number"));
  EXPECT_THAT(error("all_reduce,4,5,8,1"), HasSubstr("line 2: '5' is not a number up to 4"));
  EXPECT_THAT(error("all_reduce,4,1,8,fast"), HasSubstr("line 2: 'fast' is not a time"));
  EXPECT_THAT(error(""), HasSubstr("no row of times"));
  EXPECT_GT(ImportEveryTruncation(kRcclTable, "nccl-tests"), 70u);
  EXPECT_GT(ImportFlippedCopies(kRcclTable, "nccl-tests", 1000), 200u);
}

// ---- JSON ----

// Returns a document as src/util.cu of nccl-tests writes it (version 2 of the format). Roots and booleans are
// texts, values that were not measured are null, and invalid times are "nan".
nlohmann::json TestDocument() {
  using nlohmann::json;
  const auto device = [](int rank, const char* host) {
    return json{{"rank", rank},
                {"group", 0},
                {"pid", 7},
                {"hostname", host},
                {"device", rank % 2},
                {"device_hex", "0000:18:00"},
                {"device_info", "NVIDIA H100"}};
  };
  const auto body = [](double us, double bytes) {
    const double gb_s = bytes / us / 1e3;
    return json{{"time", us}, {"alg_bw", gb_s}, {"bus_bw", 0.75 * gb_s}, {"nwrong", nullptr}};
  };
  json document{{"version", 2}, {"start_time", "2026-01-01 10:00:00"}, {"nccl_version", 22809}};
  document["args"] = {"/opt/build/all_gather_perf", "-b", "8"};
  document["env"] = {"HOME=/root", "PATH=/bin"};
  document["config"] = {{"nthreads", 1},
                        {"devices", {device(0, "a"), device(1, "a"), device(2, "b"), device(3, "b")}}};
  document["results"] = {
      {{"size", 0}, {"root", "    -1"}, {"out_of_place", body(1, 0)}, {"in_place", body(1, 0)}},
      {{"size", 1024},
       {"root", "    -1"},
       {"out_of_place", body(20.5, 1024)},
       {"in_place", body(19.25, 1024)}},
      {{"size", 2048},
       {"out_of_place", body(30, 2048)},
       {"out_of_place_per_iter", {{"times_us", {29.5, 30.5, 30.0}}}},
       {"in_place", nullptr}}};
  return document;
}

TEST(NcclTests, JsonOfNewerReleases) {
  const auto imported = ImportText(TestDocument().dump(), "", "run.json");
  ASSERT_TRUE(imported) << imported.error().message;
  const MeasurementFile& file = *imported->measurements;
  EXPECT_EQ(file.library, "NCCL 2.28.9");
  EXPECT_EQ(file.machine, "NVIDIA H100");
  EXPECT_EQ(file.command, "/opt/build/all_gather_perf -b 8");
  ASSERT_EQ(file.rows.size(), 3u);
  EXPECT_EQ(file.rows[0].collective, Collective::kAllGather);
  EXPECT_EQ(file.rows[0].bytes, 1024u);
  EXPECT_EQ(file.rows[0].microseconds, std::vector<float>{20.5F});
  EXPECT_TRUE(file.rows[0].is_default);
  EXPECT_EQ(file.rows[1].topology, "run in-place");
  EXPECT_EQ(file.rows[2].microseconds, (std::vector<float>{29.5F, 30.5F, 30.0F})) << "single iterations";
  EXPECT_EQ(file.contexts[0].model.fabric.n_ranks, 4);
  EXPECT_EQ(file.contexts[0].model.fabric.n_nodes, 2);
}

TEST(NcclTests, JsonSaysWhatTheEnvironmentForced) {
  auto document = TestDocument();
  document["env"].push_back("NCCL_ALGO=Tree");
  const auto imported = ImportText(document.dump(), "nccl-tests");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_FALSE(imported->measurements->rows[0].is_default);
  EXPECT_THAT(imported->notes, testing::Contains(HasSubstr("NCCL_ALGO=Tree")));
}

TEST(NcclTests, AJsonTimeThatDoesNotFitItsBandwidthIsLeftOut) {
  auto document = TestDocument();
  auto& half = document["results"][1]["out_of_place"];
  half = {{"time", 20.5}, {"alg_bw", 10.5}, {"bus_bw", 7.875}};
  const auto imported = ImportText(document.dump(), "nccl-tests");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->measurements->rows.size(), 2u);
  EXPECT_THAT(imported->notes, testing::Contains(HasSubstr("1 times that do not fit their size")));
}

TEST(NcclTests, ATimeOfATableThatDoesNotFitItsBandwidthsIsLeftOut) {
  const std::string table =
      "coll,ranks,bytes,oop_us,oop_algbw,oop_busbw,ip_us,ip_algbw,ip_busbw\n"
      "all_reduce,4,1048576,100.0,10.49,15.73,100.0,10.49,15.73\n";
  const auto rows = [&](const std::string& from, const std::string& to) {
    std::string changed = table;
    changed.replace(changed.find(from), from.size(), to);
    const auto imported = ImportText(changed, "nccl-tests");
    return imported ? imported->measurements->rows.size() : 0;
  };
  EXPECT_EQ(rows("coll", "coll"), 2u);
  EXPECT_EQ(rows(",100.0,10.49", ",190.0,10.49"), 1u);
  EXPECT_EQ(rows(",4,", ",8,"), 0u) << "the bus bandwidths are those of four ranks";
  EXPECT_EQ(rows("1048576", "1048676000"), 0u);
}

TEST(NcclTests, ABandwidthThatBelongsToNoOneTimeChecksNone) {
  const auto times = [](const std::string& table) {
    const auto imported = ImportText(table, "");
    return imported ? imported->measurements->rows.size() : 0;
  };
  EXPECT_EQ(times("coll,ranks,bytes,oop_us,algbw,busbw,ip_us,algbw,busbw\n"
                  "all_reduce,4,1048576,100.0,10.49,15.73,200.0,5.24,7.86\n"),
            2u);
  EXPECT_EQ(times("coll,ranks,bytes,oop_us,ip_us,algbw\nall_reduce,4,1048576,100.0,200.0,5.24\n"), 2u);
}

std::string TableInGigabits(int damaged_row) {
  std::string table = "coll,ranks,bytes,oop_us,algbw\n";
  for (int i = 1; i <= 4; ++i) {
    const double gb_s = (i << 20) / 100. / 1e3;
    table += fmt::format("all_reduce,4,{},100.0,{:.2f}\n", i << 20, gb_s * (damaged_row == i ? 1 : 8));
  }
  return table;
}

TEST(NcclTests, BandwidthsThatMostTimesContradictCheckNone) {
  for (const int damaged_row : {0, 2}) {
    const auto imported = ImportText(TableInGigabits(damaged_row), "");
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_EQ(imported->measurements->rows.size(), 4u);
    EXPECT_THAT(imported->notes, testing::ElementsAre(testing::AllOf(
                                     HasSubstr(fmt::format("{} times", damaged_row == 0 ? 4 : 3)),
                                     HasSubstr("kept, because"))));
  }
  auto document = TestDocument();
  document["results"] = nlohmann::json::array();
  for (const int mebibytes : {1, 2, 3}) {
    const double gb_s = (mebibytes << 20) / 100. / 1e3;
    document["results"].push_back(
        {{"size", mebibytes << 20},
         {"out_of_place", {{"time", 100}, {"alg_bw", 8 * gb_s}, {"bus_bw", gb_s}}}});
  }
  const auto imported = ImportText(document.dump(), "nccl-tests");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->measurements->rows.size(), 3u);
  EXPECT_THAT(imported->notes, testing::ElementsAre(HasSubstr("3 times that do not fit")));
}

TEST(NcclTests, AFileOfContradictionsSaysWhyItHasNoTimes) {
  const auto table =
      ImportText("coll,ranks,bytes,oop_us,algbw\nall_reduce,4,1048576,100.0,83.89\n", "nccl-tests");
  auto document = TestDocument();
  document["results"] = {
      {{"size", 1 << 20}, {"out_of_place", {{"time", 100}, {"alg_bw", 83.89}, {"bus_bw", 62.9}}}}};
  const auto json = ImportText(document.dump(), "nccl-tests");
  for (const auto& imported : {table, json}) {
    ASSERT_FALSE(imported);
    EXPECT_THAT(imported.error().message, HasSubstr(": 1 times that do not fit their size"));
    EXPECT_THAT(imported.error().hint, HasSubstr("compare the file's sizes"));
  }
}

TEST(NcclTests, AJsonTimeOfTheHostIsNotJudgedByTheBandwidthsOfTheGpu) {
  auto document = TestDocument();
  document["results"] = {
      {{"size", 67108864}, {"out_of_place", {{"cpu_time", 8.1}, {"alg_bw", 150.0}, {"bus_bw", 112.5}}}}};
  const auto imported = ImportText(document.dump(), "nccl-tests");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->measurements->rows.at(0).microseconds, std::vector<float>{8.1F});
  EXPECT_THAT(imported->notes, testing::ElementsAre(HasSubstr("1 times that the host took")));
}

TEST(NcclTests, JsonOfGroupsHasTheRanksOfTheFirst) {
  auto document = TestDocument();
  for (auto& device : document["config"]["devices"]) device["group"] = device["rank"].get<int>() % 2;
  document["results"] = {
      {{"size", 1 << 20}, {"out_of_place", {{"time", 100}, {"alg_bw", 10.48576}, {"bus_bw", 5.24288}}}}};
  const auto imported = ImportText(document.dump(), "nccl-tests");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->measurements->rows.size(), 1u);
  EXPECT_EQ(imported->measurements->contexts[0].model.fabric.n_ranks, 2);
  EXPECT_EQ(imported->measurements->contexts[0].model.fabric.n_nodes, 2);
  EXPECT_THAT(imported->notes,
              testing::ElementsAre(HasSubstr("groups of ranks that ran at the same time (2)")));
  document["config"]["devices"][3]["rank"] = 1;
  EXPECT_THAT(ImportText(document.dump(), "nccl-tests").error().message, HasSubstr("device of rank 1"));
}

TEST(NcclTests, DamagedJsonIsAnErrorWithTheByte) {
  const std::string whole = TestDocument().dump();
  EXPECT_EQ(ImportEveryTruncation(whole, "nccl-tests"), whole.size());
  EXPECT_GT(ImportFlippedCopies(whole, "nccl-tests", 2000), 1000u);
  for (const char* key : {"args", "config", "results"}) {
    auto document = TestDocument();
    document.erase(key);
    EXPECT_FALSE(ImportText(document.dump(), "nccl-tests")) << key;
    document[key] = 7;
    EXPECT_FALSE(ImportText(document.dump(), "nccl-tests")) << key;
  }
}

TEST(NcclTests, ANumberBeyondADoubleIsAnErrorWithTheByte) {
  std::string text = TestDocument().dump();
  const size_t at = text.find("20.5");
  text.replace(at, 4, "1e400");
  EXPECT_THAT(ImportText(text, "nccl-tests").error().message, HasSubstr(fmt::format("byte {}: ", at + 5)));
}

TEST(NcclTests, JsonMayNameItsDevicesBehindItsResults) {
  const std::string text = TestDocument().dump();
  const size_t config = text.find("\"config\""), env = text.find("\"env\"");
  const std::string moved = text.substr(0, config) + text.substr(env, text.size() - 1 - env) + "," +
                            text.substr(config, env - 1 - config) + "}";
  const auto imported = ImportText(moved, "nccl-tests", "run.json");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->measurements, ImportText(text, "nccl-tests", "run.json")->measurements);
}

}  // namespace
}  // namespace dynamiccl
