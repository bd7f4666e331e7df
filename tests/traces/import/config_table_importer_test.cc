// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "traces/format/measurement_file.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ConfigTable : public testing::Test {
 protected:
  Result<Imported> Import(const std::string& text, const std::string& format = "config-table") {
    // Each test runs in its own process, at the same time as the others.
    const std::string folder = testing::TempDir() + "/config-table-" + std::to_string(::getpid());
    std::filesystem::create_directory(folder);
    const std::string path = folder + "/cluster.csv";
    std::ofstream(path) << text;
    auto imported = ImportFile(path, format);
    std::filesystem::remove_all(folder);
    return imported;
  }
  std::string ErrorOf(const std::string& text) {
    const auto imported = Import(text);
    return imported ? "no error" : imported.error().message;
  }
};

TEST_F(ConfigTable, RowsOfACellAndConfigBecomeItsRepeats) {
  const auto imported = Import(
      "# made elsewhere\n"
      "run,collective,nodes,ranks,bytes,algorithm,protocol,channels,us\n"
      "1,AllReduce,4,16,1024,Ring,LL,2,10.5\n"
      "1,AllReduce,4,16,1024,Tree,Simple,4,12\n"
      "\n"
      "2,allreduce,4,16,1024,ring,ll,2,11.5\r\n"
      "2,AllReduce,4,16,1024,,,,9\n",
      "");
  ASSERT_TRUE(imported) << imported.error().message;
  const MeasurementFile& file = *imported->measurements;
  ASSERT_EQ(file.rows.size(), 3u);
  EXPECT_THAT(file.rows[0].microseconds, ElementsAre(10.5F, 11.5F));
  EXPECT_EQ(file.rows[0].config, (CollectiveConfig{Algorithm::kRing, Protocol::kLL, 2}));
  EXPECT_FALSE(file.rows[1].is_default);
  EXPECT_TRUE(file.rows[2].is_default);
  ASSERT_EQ(file.contexts.size(), 1u);
  EXPECT_EQ(file.contexts[0].topology, "cluster x16");
  EXPECT_EQ(file.contexts[0].model.fabric.n_ranks, 16);
  EXPECT_EQ(file.contexts[0].model.fabric.n_nodes, 4);
  const auto text = FormatMeasurements(file);
  ASSERT_TRUE(text) << text.error().message;
  const auto again = ParseMeasurements(*text, "again");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->rows, file.rows);
}

TEST_F(ConfigTable, AnAlgorithmWithoutProtocolOrChannelsStaysUntold) {
  const auto imported = Import("topology,collective,ranks,bytes,algorithm,us\nmn5,AllGather,4,64,Ring,3\n");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->measurements->rows[0].config,
            (CollectiveConfig{Algorithm::kRing, Protocol::kUndefined, 0}));
  EXPECT_FALSE(imported->measurements->rows[0].is_default);
  EXPECT_EQ(imported->measurements->rows[0].topology, "mn5 x4");
  ASSERT_EQ(imported->unfilled.size(), 2u);
  EXPECT_EQ(imported->unfilled[1], (UnfilledField{"channels", 1, "unknown"}));
}

TEST_F(ConfigTable, EveryWrongLineIsNamed) {
  const std::string header = "collective,nodes,ranks,bytes,algorithm,protocol,channels,us\n";
  EXPECT_THAT(ErrorOf("collective,ranks,us\n"), HasSubstr("line 1: the header has no column 'bytes'"));
  EXPECT_THAT(ErrorOf("us,us\n"), HasSubstr("line 1: column 'us' is there twice"));
  EXPECT_THAT(ErrorOf(header), HasSubstr("no row of times"));
  EXPECT_THAT(ErrorOf(header + "AllReduce,1,2,64,Ring,LL,1\n"),
              HasSubstr("line 2: 7 fields under 8 columns"));
  EXPECT_THAT(ErrorOf(header + "AllTogether,1,2,64,Ring,LL,1,5\n"), HasSubstr("no collective 'AllTogether'"));
  EXPECT_THAT(ErrorOf(header + "AllReduce,1,2,64,Rung,LL,1,5\n"), HasSubstr("no algorithm 'Rung'"));
  EXPECT_THAT(ErrorOf(header + "AllReduce,1,2,64,,LL,1,5\n"), HasSubstr("a protocol without an algorithm"));
  EXPECT_THAT(ErrorOf(header + "AllReduce,3,2,64,Ring,LL,1,5\n"), HasSubstr("'nodes' is '3'"));
  EXPECT_THAT(ErrorOf(header + "AllReduce,1,2,-64,Ring,LL,1,5\n"), HasSubstr("'bytes' is '-64'"));
  EXPECT_THAT(ErrorOf(header + "AllReduce,1,2,64,Ring,LL,256,5\n"), HasSubstr("'channels' is '256'"));
  for (const char* time : {"", "x", "-1", "nan", "inf", "5us"}) {
    EXPECT_THAT(ErrorOf(header + "AllReduce,1,2,64,Ring,LL,1," + time + "\n"),
                HasSubstr("line 2: 'us' is '"));
  }
  EXPECT_THAT(ErrorOf(header + "AllReduce,1,2,64,Ring,LL,1,5\nAllReduce,2,2,64,Ring,LL,1,5\n"),
              HasSubstr("line 3: topology 'cluster x2' has 2 nodes here and 1 above"));
}

}  // namespace
}  // namespace dynamiccl
