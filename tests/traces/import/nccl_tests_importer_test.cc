// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <regex>

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

// The independent count: lines that begin, after srun's tag, with a size and a number of elements; the time
// is the fourth value from the out-of-place block's end, counted from the right (in-place block: time algbw
// busbw error).
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
      {"alltoall", Collective::kSendRecv},   {"broadcast", Collective::kBroadcast},
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

Result<Imported> ImportText(const std::string& text) {
  const std::string path = testing::TempDir() + fmt::format("nccl_tests_{}.txt", ::getpid());
  std::ofstream(path) << text;
  auto imported = ImportFile(path, "nccl-tests");
  std::filesystem::remove(path);
  return imported;
}

TEST(NcclTests, StripsTagsOfOpenMpiAlsoInTheMiddle) {
  std::string tagged = "[1,0]<stdout>:" + std::string(kRow);
  tagged.insert(40, "[1,0]<stdout>:");
  const auto imported = ImportText(kHead + tagged + "host:1:2 [0] NCCL INFO comm 0x1\n" + kRow);
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
  const auto imported = ImportText(kHead + blank);
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->measurements->rows.at(0).microseconds, std::vector<float>{7.84f});
}

TEST(NcclTests, TakesMoreThanOneTable) {
  std::string second = std::string(kHead) + kRow;
  second.replace(second.find("all_reduce"), 10, "broadcast");
  const auto imported = ImportText(kHead + std::string(kRow) + second);
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->measurements->rows.at(0).collective, Collective::kAllReduce);
  EXPECT_EQ(imported->measurements->rows.at(2).collective, Collective::kBroadcast);
  EXPECT_EQ(imported->measurements->contexts.size(), 4u);
}

TEST(NcclTests, ErrorsSayTheLine) {
  EXPECT_THAT(ImportText("").error().message, HasSubstr("no row of results"));
  EXPECT_THAT(ImportText(std::string(kHead) + "  8 2 float\n").error().message, HasSubstr("no row"));
  EXPECT_THAT(ImportText(std::string(kHead) + "  8 2 float sum 3\n").error().message, HasSubstr("line 8:"));
  std::string no_ranks = std::string(kHead) + kRow;
  no_ranks.erase(no_ranks.find("#  Rank  0"), no_ranks.find("#\n") - no_ranks.find("#  Rank  0"));
  EXPECT_THAT(ImportText(no_ranks).error().message, HasSubstr("number of ranks"));
}

}  // namespace
}  // namespace dynamiccl
