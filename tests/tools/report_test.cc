// SPDX-License-Identifier: Apache-2.0
#include "tools/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "tools/report/choice_comparison.h"
#include "tools/report/site_store_effects.h"
#include "tools/report/site_store_table.h"
#include "tools/report/svg_chart.h"
#include "traces/format/measurement_file.h"

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

DemoResult SmallDemo() {
  DemoResult demo;
  demo.findings = {"<script>alert('x')</script> & \"more\""};
  const Timing slow{100, 95, 105, 20};
  const Timing fast{50, 48, 52, 20};
  demo.choices = {{.stage = 2,
                   .collective = "ReduceScatter",
                   .bytes = 1 << 20,
                   .topology = "two-nodes",
                   .default_config = "Ring Simple x8",
                   .our_config = "Ring LL x2",
                   .best_config = "Ring LL x2",
                   .default_us = slow,
                   .our_us = fast,
                   .best_us = fast}};
  demo.fingerprints = {{2, "ReduceScatter", 3, 4 << 20}};
  demo.step_times = {{0, "default", slow, {}}, {0, "ours", slow, {}}};
  return demo;
}

MeasurementFile SmallSweep() {
  const auto row = [](Protocol protocol, bool is_default, std::vector<float> times) {
    return Measurement{
        "two-nodes", Collective::kAllReduce, 1 << 20, {Algorithm::kRing, protocol, 4}, is_default, times};
  };
  MeasurementFile file;
  file.rows = {row(Protocol::kSimple, true, {100, 101, 102, 103}),
               row(Protocol::kSimple, false, {99, 100, 101, 104}),
               row(Protocol::kLL, false, {50, 60, 52, 62})};
  return file;
}

TEST(HtmlEscape, LeavesNoMarkupOfTheInput) {
  EXPECT_EQ(EscapeHtml("<a href='x'>&\"</a>"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;");
}

TEST(HtmlEscape, RandomBytesNeverOpenATag) {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    std::string text;
    for (int j = 0; j < 64; ++j) text += static_cast<char>(random() % 256);
    EXPECT_THAT(EscapeHtml(text), Not(HasSubstr("<")));
    EXPECT_THAT(EscapeHtml(text), Not(HasSubstr("\"")));
  }
}

TEST(HtmlTable, FillsShortRowsAndCutsLongOnes) {
  HtmlTable table({{"a"}, {"b", true}});
  table.AddRow({"1"});
  table.AddRow({"1", "2", "3"});
  EXPECT_THAT(table.Html(), HasSubstr("<tr><td>1</td><td class=\"n\"></td></tr>"));
  EXPECT_THAT(table.Html(), Not(HasSubstr("3")));
}

TEST(HtmlTable, CellsOfManyColumnsNameTheirColumnForAPhone) {
  HtmlTable table({{"a"}, {"b", true}, {"c"}, {"<d>"}});
  table.AddRow({"1", "2", "3", "4"});
  EXPECT_THAT(table.Html(), HasSubstr("<table class=\"rows\">"));
  EXPECT_THAT(table.Html(), HasSubstr("<td class=\"n\" data-title=\"b\">2</td>"));
  EXPECT_THAT(table.Html(), HasSubstr("<td data-title=\"&lt;d&gt;\">4</td>"));
}

TEST(Report, NeedsNoNetworkAndRunsNoScript) {
  const std::string html =
      RenderReport({.demo = SmallDemo(), .measurements = {{"s.measurements", SmallSweep()}}});
  EXPECT_THAT(html, HasSubstr("Content-Security-Policy"));
  for (const char* forbidden : {"<script", "http://", "https://", "src=", "url(", "@import", "onload"}) {
    EXPECT_THAT(html, Not(HasSubstr(forbidden)));
  }
}

TEST(Report, EveryLinkOfTheMenuHasItsPart) {
  const std::string html = RenderReport({.demo = SmallDemo()});
  size_t links = 0;
  for (size_t at = html.find("href=\"#"); at != std::string::npos; at = html.find("href=\"#", at + 1)) {
    const std::string id = html.substr(at + 7, html.find('"', at + 7) - at - 7);
    EXPECT_THAT(html, HasSubstr("<section id=\"" + id + "\">"));
    ++links;
  }
  EXPECT_GE(links, 8u);
}

TEST(Report, MarksAWinAndCallsOverlapNoise) {
  const std::string html = RenderReport({.demo = SmallDemo()});
  EXPECT_THAT(html, HasSubstr("<tr class=\"win\">"));
  EXPECT_THAT(html, HasSubstr("-50 %"));
  EXPECT_THAT(html, HasSubstr("noise"));
}

TEST(Report, EmptyInputsGiveAPage) {
  EXPECT_THAT(RenderReport({}), HasSubstr("</html>"));
}

TEST(Report, UnknownKindOfInputSaysWhatFits) {
  const std::string path = ::testing::TempDir() + "notes.txt";
  std::ofstream(path) << "notes\n";
  const auto inputs = ReadReportInputs({path}, "");
  ASSERT_FALSE(inputs.has_value());
  EXPECT_THAT(inputs.error().hint, HasSubstr(".ctrace"));
  const auto missing = ReadReportInputs({path + ".missing"}, "");
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().message, HasSubstr("No such file"));
  EXPECT_THAT(missing.error().hint, HasSubstr("check the path"));
}

TEST(Report, LogsAloneAreAnErrorAndNoEmptyPage) {
  const std::string path = ::testing::TempDir() + "nccl.log";
  std::ofstream(path) << "vm:1:1 [0] NCCL INFO AllReduce: opCount 0\n";
  const auto inputs = ReadReportInputs({path}, "");
  ASSERT_FALSE(inputs.has_value());
  EXPECT_THAT(inputs.error().message, HasSubstr(path));
  EXPECT_THAT(inputs.error().hint, HasSubstr("dynamiccl why"));
}

TEST(Report, DamagedDemoResultIsAnErrorWithItsPath) {
  const std::string path = ::testing::TempDir() + "damaged-demo.json";
  for (const char* text :
       {"", "{", "[]", "{\"schema\":2}", "{\"schema\":1,\"choices\":[{\"stage\":\"x\"}]}", "3"}) {
    std::ofstream(path) << text;
    const auto inputs = ReadReportInputs({path}, "");
    ASSERT_FALSE(inputs.has_value()) << text;
    EXPECT_EQ(inputs.error().kind, ErrorKind::kCorrupt) << text;
    EXPECT_THAT(inputs.error().message, HasSubstr(path));
  }
}

TEST(Report, DemoResultSurvivesWritingAndReading) {
  const std::string path = ::testing::TempDir() + "demo.json";
  ASSERT_TRUE(WriteDemoResult(path, SmallDemo()).has_value());
  const auto read = ReadDemoResult(path);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(nlohmann::json(*read), nlohmann::json(SmallDemo()));
}

TEST(ChoiceComparison, PicksOnEvenRepeatsAndTimesOnOddOnes) {
  const MeasurementFile file = SmallSweep();
  const std::vector<SweepCell> cells = CellsOf(file);
  ASSERT_EQ(cells.size(), 1u);
  const TimedConfig best = BestOf(cells[0]);
  EXPECT_EQ(best.config.protocol, Protocol::kLL);
  EXPECT_DOUBLE_EQ(best.microseconds.median, 61);
  EXPECT_DOUBLE_EQ(DefaultOf(cells[0]).microseconds.median, 102);
}

TEST(ChoiceComparison, ChoiceLeftToNcclHasTheTimeOfTheDefault) {
  const MeasurementFile file = SmallSweep();
  const SweepCell cell = CellsOf(file)[0];
  EXPECT_DOUBLE_EQ(ChoiceOf(cell, kLeaveNcclAlone).microseconds.median, 102);
  EXPECT_DOUBLE_EQ(ChoiceOf(cell, {Algorithm::kRing, Protocol::kLL, 0}).microseconds.median, 61);
  EXPECT_EQ(ChoiceOf(cell, {Algorithm::kTree, Protocol::kLL, 1}).microseconds.repeats, 0);
}

// A table of forced configs, or a sweep that was cut short, has no time of the library's own choice.
TEST(ChoiceComparison, ADefaultThatWasNotMeasuredHasNoTime) {
  MeasurementFile file = SmallSweep();
  file.rows.erase(file.rows.begin());
  const Json row = CellsJson(file)[0];
  EXPECT_TRUE(row["default_us"].is_null()) << row.dump();
  EXPECT_EQ(row["best_us"]["median"], 61);
  const std::string html = RenderReport({.measurements = {{"t.measurements", file}}});
  EXPECT_THAT(html, HasSubstr("not measured"));
  EXPECT_THAT(html, Not(HasSubstr(">0<")));
}

TEST(Timing, QuartilesOfKnownSamples) {
  const Timing timing = Summarize({5, 1, 4, 2, 3});
  EXPECT_DOUBLE_EQ(timing.median, 3);
  EXPECT_DOUBLE_EQ(timing.low, 2);
  EXPECT_DOUBLE_EQ(timing.high, 4);
  EXPECT_FALSE(ClearlyDiffer(timing, {}));
  EXPECT_FALSE(ClearlyDiffer({1, 1, 1, 2}, {9, 9, 9, 2})) << "two samples say nothing";
  EXPECT_TRUE(ClearlyDiffer({1, 1, 1, 3}, {9, 9, 9, 3}));
}

TEST(StackedBars, TotalsAreReadable) {
  const std::string svg =
      StackedBars("calls", {{"a", {{"x", 1200}, {"y", 34}}}, {"b", {{"x", 0.12345}}}}, "calls");
  EXPECT_THAT(svg, HasSubstr(">1234 calls<"));
  EXPECT_THAT(svg, HasSubstr(">0.123 calls<"));
}

TEST(SizeTimeChart, LeavesOutWhatHasNoLogarithm) {
  EXPECT_EQ(SizeTimeChart("x", {{"default", "default", {{0, 5}, {5, 0}, {-1, 2}}}}), "");
  EXPECT_THAT(SizeTimeChart("<x>", {{"default", "default", {{1024, 5}}}}), HasSubstr("&lt;x&gt;"));
}

TEST(SiteStoreTable, SaysWhatIsBestAndWhetherAJobUsesIt) {
  constexpr int64_t kNow = 1'800'000'000;
  constexpr int64_t kDay = 24 * 3600;
  SiteStore store;
  SiteKey key;
  key.place = {{0xab, 0xcd}, 23007, 8, 2};
  key.key = {Collective::kAllGather, SizeClassOf(1 << 20), Role::kParameterGather};
  store.Learn(key, {{Algorithm::kRing, Protocol::kLL, 4}, -65536, 12, 2, kNow - 3 * kDay});
  key.place.n_nodes = 1;
  store.Learn(key, {kLeaveNcclAlone, 0, 9, 1, kNow - 40 * kDay});
  const std::string text = SiteStoreAsText(store, kNow);
  EXPECT_THAT(text, HasSubstr("2 entries"));
  EXPECT_THAT(text, HasSubstr("Ring LL x4"));
  EXPECT_THAT(text, HasSubstr("-50 %"));
  EXPECT_THAT(text, HasSubstr("40 d, not used: tried again"));
  const Json json = SiteStoreAsJson(store, kNow);
  ASSERT_EQ(json["entries"].size(), 2u);
  EXPECT_EQ(json["entries"][0]["used"], false);
  EXPECT_EQ(json["entries"][1]["best"], "Ring LL x4");
  EXPECT_EQ(json["entries"][1]["nccl_version"], "2.30.7");
  EXPECT_DOUBLE_EQ(json["entries"][1]["time_ratio"], 0.5);
  EXPECT_THAT(text, Not(HasSubstr("Findings")));
}

TEST(SiteStoreTable, SaysWhatConfigsDidToSteps) {
  constexpr int64_t kNow = 1'800'000'000;
  SiteStore store;
  const SitePlace place{{0xab, 0xcd}, 23007, 8, 2};
  store.Learn({place, 0b1100, Algorithm::kRing, Protocol::kSimple, ChannelCount::kOne},
              {{2, 0.75}, -0.25, 0.03, 40, kNow - 3 * 24 * 3600});
  const std::string text = SiteStoreAsText(store, kNow);
  EXPECT_THAT(text, HasSubstr("against NCCL's choice: 1\n"));
  EXPECT_THAT(text, HasSubstr("AllGather ReduceScatter"));
  EXPECT_THAT(text, HasSubstr("4.0x    75 %  Ring/Simple one channel"));
  EXPECT_THAT(text, HasSubstr("-25.0 +-  3.0 %    40  3 d"));
  const Json json = SiteStoreAsJson(store, kNow);
  ASSERT_EQ(json["findings"].size(), 1u);
  EXPECT_EQ(json["findings"][0]["collectives"], (Json{"AllGather", "ReduceScatter"}));
  EXPECT_EQ(json["findings"][0]["channels"], "one channel");
  EXPECT_DOUBLE_EQ(json["findings"][0]["slowness"], 4);
}

// Stores a finding of a job with 8 ranks on 2 nodes. `fabric` is the first byte of the fabric's digest.
void LearnFinding(SiteStore& store, uint8_t fabric, Algorithm algorithm, double effect) {
  const Protocol protocol = algorithm == Algorithm::kUndefined ? Protocol::kUndefined : Protocol::kSimple;
  const SitePlace place{{fabric, 0xcd}, 23007, 8, 2};
  store.Learn({place, 0b1100, algorithm, protocol, ChannelCount::kFew}, {{2, 0.75}, effect, 0.03, 40, 1000});
}

TEST(SiteStoreEffects, AreTheFindingsAboutConfigs) {
  SiteStore store;
  LearnFinding(store, 0xab, Algorithm::kRing, -0.25);
  LearnFinding(store, 0xab, Algorithm::kUndefined, 0);
  const auto file = EffectsInStore(store, "rail");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->contexts.size(), 1u);
  EXPECT_EQ(file->contexts[0].topology, "rail");
  EXPECT_EQ(file->contexts[0].model.fabric.n_ranks, 8);
  EXPECT_EQ(file->contexts[0].model.fabric.n_nodes, 2);
  MeasuredEffect expected;
  expected.topology = "rail";
  expected.collectives = 0b1100;
  expected.slowness = 2;
  expected.share = 0.75;
  expected.config = {Algorithm::kRing, Protocol::kSimple, 0};
  expected.channel_count = ChannelCount::kFew;
  expected.log_ratio = -0.25;
  expected.error = 0.03;
  expected.steps = 40;
  EXPECT_EQ(file->effects, std::vector{expected});
  EXPECT_TRUE(FormatMeasurements(*file));
}

TEST(SiteStoreEffects, NameEachPlaceApart) {
  SiteStore store;
  LearnFinding(store, 0xab, Algorithm::kRing, -0.25);
  LearnFinding(store, 0xef, Algorithm::kTree, 0.1);
  const auto file = EffectsInStore(store, "");
  ASSERT_TRUE(file && file->contexts.size() == 2);
  EXPECT_EQ(file->contexts[0].topology, "abcd0000-8-ranks-2-nodes");
  EXPECT_EQ(file->effects[1].topology, "efcd0000-8-ranks-2-nodes");
  EXPECT_EQ(EffectsInStore(store, "site")->effects[0].topology, "site-abcd0000-8-ranks-2-nodes");
}

TEST(SiteStoreEffects, OfAStoreWithoutFindingsAreAnError) {
  const auto file = EffectsInStore(SiteStore(), "rail");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().kind, ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace dynamiccl
