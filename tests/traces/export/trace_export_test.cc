// SPDX-License-Identifier: Apache-2.0
#include "traces/export/trace_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/traces/any_trace.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

// Returns the text of an export that is one file.
std::string TextOf(const Result<Exported>& exported) {
  EXPECT_TRUE(exported) << exported.error().message;
  EXPECT_EQ(exported->files.size(), 1u);
  return exported->files.at(0).content;
}

Trace TwoRanks() {
  Trace trace;
  for (int32_t rank = 0; rank < 2; ++rank) {
    SectionBuilder builder(rank, 2);
    builder.Add(StepRecord({.marked_ns = 0, .step = 4, .phase = Phase::kBackward}));
    builder.Call(0, Collective::kReduceScatter, 1 << 20);
    builder.section().records.back().duration_ns = 2500;
    builder.section().records.back().duration_source = static_cast<uint8_t>(DurationSource::kStream);
    CollectiveCall call;
    call.collective = Collective::kReduceScatter;
    builder.Add(DecisionRecord(0, call, {.asked_ns = 0, .config = {Algorithm::kRing, Protocol::kSimple, 4}}));
    builder.Call(1, Collective::kAllGather, 512);
    builder.section().opened = {1000, rank * 50};  // the second rank's clock is 50 ns ahead
    trace.sections.push_back(builder.section());
  }
  return trace;
}

TEST(ChromeTimeline, HasASliceForEveryTimedCallAndArrowsBetweenRanks) {
  const Json json = Json::parse(TextOf(ExportChromeTimeline(TwoRanks())));
  std::map<std::string, int> phases;
  for (const Json& event : json["traceEvents"]) ++phases[event["ph"]];
  EXPECT_EQ(phases["X"], 2);
  EXPECT_EQ(phases["s"], 1);
  EXPECT_EQ(phases["f"], 1);
  EXPECT_EQ(phases["i"], 4) << "two calls without a duration, two step marks";
  const auto slice = std::find_if(json["traceEvents"].begin(), json["traceEvents"].end(),
                                  [](const Json& e) { return e["ph"] == "X"; });
  EXPECT_EQ((*slice)["name"], "ReduceScatter 1M");
  EXPECT_EQ((*slice)["dur"], 2.5);
  EXPECT_EQ((*slice)["args"]["algorithm"], "Ring");
}

TEST(ChromeTimeline, AlignsRanksByTheirAnchors) {
  const Json json = Json::parse(TextOf(ExportChromeTimeline(TwoRanks())));
  std::vector<double> starts;
  for (const Json& event : json["traceEvents"]) {
    if (event["ph"] == "X") starts.push_back(event["ts"]);
  }
  EXPECT_NEAR(starts.at(1) - starts.at(0), 0.050, 1e-9);
}

// Ranks 1 and 2 of three ranks have their own communicator.
TEST(ChromeTimeline, ArrowsJoinTheRanksOfTheCommunicator) {
  Trace trace;
  for (int32_t rank = 0; rank < 3; ++rank) {
    SectionBuilder builder(rank, 3);
    if (rank > 0) {
      builder.Add(CommunicatorRecord(1, {.id = 0xdef, .rank = rank - 1, .n_ranks = 2, .n_nodes = 1}, 0));
      IssuedCall issued;
      issued.call.bytes = 64;
      TraceRecord record = CallRecord(1, issued);
      record.duration_ns = 10;
      record.duration_source = 2;
      builder.Add(record);
    }
    trace.sections.push_back(builder.section());
  }
  trace.sections[1].opened = {0, 1000};  // rank 1 issues after rank 2
  const Json json = Json::parse(TextOf(ExportChromeTimeline(trace)));
  std::map<std::string, int> ends;
  for (const Json& event : json["traceEvents"]) {
    if (event.contains("bp")) ends[event["ph"]] = event["pid"];
  }
  EXPECT_EQ(ends, (std::map<std::string, int>{{"s", 2}, {"f", 1}}));
}

TEST(ChromeTimeline, TakesAnyTrace) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_TRUE(Json::parse(TextOf(ExportChromeTimeline(AnyTrace(seed)))).is_object());
}

TEST(Exports, TakeAnyTraceAndAreNamedOnce) {
  std::set<std::string_view> names;
  for (const TraceExporter& exporter : AllExporters()) {
    EXPECT_TRUE(names.insert(exporter.name).second);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const auto exported = ExportTrace(AnyTrace(seed), exporter.name);
      if (exporter.name == "goal" && !exported) continue;  // random communicators do not have all their ranks
      ASSERT_TRUE(exported) << exporter.name << ": " << exported.error().message;
      EXPECT_EQ(exporter.folder, exported->files.empty() || !exported->files[0].name.empty());
    }
  }
  EXPECT_THAT(ExportTrace({}, "exel").error().hint, HasSubstr("jsonl, csv, chrome"));
}

TEST(CsvTable, HasOneRowACallAndEqualColumns) {
  const std::string csv = TextOf(ExportCsv(TwoRanks()));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), ',') % 5, 0);
  EXPECT_THAT(csv,
              HasSubstr("1,0xabc,2,0,0,1,ReduceScatter,float,sum,1048576,,1002,2500,0,4,,,,Ring,Simple,4\n"));
}

}  // namespace
}  // namespace dynamiccl
