// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/traces/any_trace.h"
#include "traces/export/trace_export.h"

namespace dynamiccl {
namespace {

using Json = nlohmann::json;

void AddTimed(SectionBuilder& builder, uint64_t number, Collective collective, uint64_t bytes,
              uint32_t duration_ns) {
  IssuedCall issued;
  issued.call.call_number = number;
  issued.call.collective = collective;
  issued.call.bytes = bytes;
  TraceRecord record = CallRecord(0, issued);
  record.duration_ns = duration_ns;
  record.duration_source = static_cast<uint8_t>(DurationSource::kKernelStamps);
  builder.Add(record);
}

// The first rank waits for the second, so the shorter time is the time of the collective.
TEST(NcclTestsJson, TakesTheTimeOfTheRankThatWaitedLeast) {
  Trace trace;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    SectionBuilder builder(static_cast<int32_t>(rank), 2);
    AddTimed(builder, 0, Collective::kAllReduce, 1 << 20, rank == 0 ? 90'000 : 10'000);
    AddTimed(builder, 1, Collective::kAllReduce, 1 << 20, rank == 0 ? 30'000 : 70'000);
    AddTimed(builder, 2, Collective::kAllGather, 4096, 5'000);
    builder.Call(3, Collective::kAllGather, 4096);
    trace.sections.push_back(builder.section());
  }
  const auto exported = ExportNcclTests(trace);
  ASSERT_TRUE(exported);
  EXPECT_THAT(exported->notes, testing::ElementsAre(testing::HasSubstr("1 collective left out")));
  ASSERT_EQ(exported->files.size(), 2u);
  EXPECT_EQ(exported->files[0].name, "all_gather_perf.2.json");
  const Json gather = Json::parse(exported->files[0].content)["results"].at(0);
  EXPECT_EQ(gather["count"], 4096 / 4 / 2) << "per rank, as nccl-tests counts";
  EXPECT_EQ(gather["redop"], "none");
  const Json file = Json::parse(exported->files[1].content);
  EXPECT_EQ(file["config"]["devices"].size(), 2u);
  ASSERT_EQ(file["results"].size(), 1u);
  const Json row = file["results"][0];
  EXPECT_EQ(row["size"], 1 << 20);
  EXPECT_EQ(row["count"], (1 << 20) / 4);
  EXPECT_EQ(row["type"], "float");
  EXPECT_DOUBLE_EQ(row["out_of_place"]["time"], 20.0);  // the mean of 10 and 30
  EXPECT_DOUBLE_EQ(row["out_of_place_per_iter"]["min_us"], 10.0);
  EXPECT_EQ(row["out_of_place_per_iter"]["times_us"], (std::vector<double>{10.0, 30.0}));
  EXPECT_DOUBLE_EQ(row["out_of_place"]["alg_bw"], (1 << 20) / 20e3);
  EXPECT_DOUBLE_EQ(row["out_of_place"]["bus_bw"], (1 << 20) / 20e3) << "2 (n - 1) / n = 1 for two ranks";
}

}  // namespace
}  // namespace dynamiccl
