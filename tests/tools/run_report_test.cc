// SPDX-License-Identifier: Apache-2.0
#include "tools/report/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/traces/any_trace.h"
#include "tools/report/run_timeline.h"
#include "traces/format/trace.h"

namespace dynamiccl {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr CollectiveConfig kRingLl2{Algorithm::kRing, Protocol::kLL, 2};
constexpr CollectiveConfig kRingSimple4{Algorithm::kRing, Protocol::kSimple, 4};

struct Asked {
  uint64_t bytes = 1 << 20;
  CollectiveConfig config;
  DecidedBy by = DecidedBy::kNccl;
  uint8_t version = 0;
  int64_t microseconds = -1;
};

SectionCalls CallsFrom(const std::vector<Asked>& asked) {
  SectionCalls section;
  section.communicators[0] = {.id = 7, .rank = 0, .n_ranks = 2, .n_nodes = 2};
  for (size_t i = 0; i < asked.size(); ++i) {
    TraceCall call;
    call.issued.call = {7, i, asked[i].bytes, Collective::kAllReduce, DataType::kFloat32, ReduceOp::kSum, 0,
                        1, 2};
    call.issued.issued_ns = 1'000'000 * static_cast<int64_t>(i);
    call.issued.duration_ns = asked[i].microseconds < 0 ? -1 : asked[i].microseconds * 1000;
    call.decision = DecisionView{call.issued.issued_ns, asked[i].config, asked[i].by, asked[i].version};
    section.calls.push_back(call);
  }
  return section;
}

// Returns the accounts of all keys of these calls.
std::vector<RunKeyAccount> KeysFrom(const std::vector<Asked>& asked) {
  KeyCounts counts;
  for (const TraceCall& call : CallsFrom(asked).calls) counts.Take(call, 2);
  return counts.Accounts();
}

std::vector<TableVersion> VersionsFrom(const std::vector<Asked>& asked) {
  VersionList list(true);
  for (const TraceCall& call : CallsFrom(asked).calls) list.Take(call, 2);
  return list.versions();
}

StepMarks MarksOf(const TraceSection& section) {
  StepMarks marks;
  for (const StepView& mark : CallsOf(section).steps) marks.Take(mark.step, mark.marked_ns);
  return marks;
}

// Returns the calls as a trace with the name `path`.
NamedTrace TraceFrom(const std::string& path, const std::vector<Asked>& asked) {
  const SectionCalls calls = CallsFrom(asked);
  TraceSection section;
  section.rank = 0;
  section.closed = true;
  section.library = "<img src=x>";
  section.records.push_back(CommunicatorRecord(0, calls.communicators.at(0), 0));
  for (const TraceCall& call : calls.calls) {
    TraceRecord record = CallRecord(0, call.issued);
    if (call.issued.duration_ns >= 0) {
      record.duration_ns = SaturatedDuration(call.issued.duration_ns);
      record.duration_source = static_cast<uint8_t>(DurationSource::kKernelStamps);
    }
    section.records.push_back(record);
    section.records.push_back(DecisionRecord(0, call.issued.call, *call.decision));
  }
  for (TraceRecord& record : section.records) Seal(record);
  return {path, {{section}}};
}

MeasurementFile Sweep() {
  const auto row = [](const CollectiveConfig& config, bool is_default, float us) {
    return Measurement{"slow",     Collective::kAllReduce,   1 << 20, config,
                       is_default, std::vector<float>(8, us)};
  };
  MeasurementFile file;
  CostModelInput model;
  model.fabric = {.n_ranks = 2, .n_nodes = 2, .max_channels = 4, .intra = {}, .inter = {}};
  file.contexts = {{"slow", model}};
  model.fabric.n_nodes = 1;
  file.contexts.push_back({"one-node", model});
  file.rows = {row(kRingSimple4, true, 100), row(kRingSimple4, false, 100), row(kRingLl2, false, 50)};
  return file;
}

TEST(RunKeys, CountEveryCallOnceAndAddUp) {
  std::mt19937 random(11);
  std::vector<Asked> asked;
  std::map<DecidedBy, int64_t> by;
  for (int i = 0; i < 2000; ++i) {
    const auto decider = static_cast<DecidedBy>(random() % kDeciders);
    asked.push_back({uint64_t{1} << (10 + random() % 8), random() % 2 == 0 ? kRingLl2 : kLeaveNcclAlone,
                     decider, 0, static_cast<int64_t>(random() % 100)});
    ++by[decider];
  }
  const auto keys = KeysFrom(asked);
  EXPECT_EQ(keys.size(), 8u);
  std::map<DecidedBy, int64_t> found;
  int64_t calls = 0;
  for (const RunKeyAccount& key : keys) {
    calls += key.calls;
    int64_t configs = 0;
    for (const auto& [config, count] : key.configs) configs += count;
    EXPECT_EQ(configs, key.calls);
    for (const auto& [decider, count] : key.decided) found[decider] += count;
  }
  EXPECT_EQ(calls, 2000);
  EXPECT_EQ(found, by);
}

TEST(RunKeys, TimesOfTrialsAreNeitherOursNorTheDefault) {
  const auto keys = KeysFrom({{1 << 20, kRingLl2, DecidedBy::kPolicy, 0, 50},
                              {1 << 20, kRingSimple4, DecidedBy::kTrial, 0, 900},
                              {1 << 20, kLeaveNcclAlone, DecidedBy::kSample, 0, 70},
                              {1 << 20, kRingLl2, DecidedBy::kPolicy, 0, -1}});
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_DOUBLE_EQ(keys[0].ours_us.median, 50);
  EXPECT_EQ(keys[0].ours_us.repeats, 1);
  EXPECT_DOUBLE_EQ(keys[0].default_us.median, 70);
  EXPECT_EQ(keys[0].choice, kRingLl2);
}

TEST(TableVersions, SayWhereEachBeganAndWhatItChanged) {
  const auto versions = VersionsFrom({{1 << 20, kRingLl2, DecidedBy::kPolicy, 1},
                                      {1 << 10, kRingLl2, DecidedBy::kPolicy, 1},
                                      {1 << 20, kRingSimple4, DecidedBy::kTrial, 2},
                                      {1 << 20, kLeaveNcclAlone, DecidedBy::kGuard, 3},
                                      {1 << 10, kRingLl2, DecidedBy::kPolicy, 3}});
  ASSERT_EQ(versions.size(), 2u);
  EXPECT_EQ(versions[0].call_number, 2u);
  EXPECT_TRUE(versions[0].changes.empty()) << "a trial is no choice";
  EXPECT_EQ(versions[1].version, 3);
  EXPECT_EQ(versions[1].since_ns, 3'000'000);
  EXPECT_THAT(versions[1].changes, ElementsAre("AllReduce of 1M: left to NCCL in place of Ring LL x2"));
}

TEST(Regret, ComparesChoicesDefaultAndBestOnTheFabricOfTheRun) {
  std::vector<Asked> asked(3, {1 << 20, kRingLl2, DecidedBy::kPolicy});
  asked.push_back({1 << 20, kLeaveNcclAlone, DecidedBy::kSample});
  // The sweep has no measurement of this config.
  asked.push_back({1 << 20, {Algorithm::kTree, Protocol::kLL, 1}, DecidedBy::kTrial});
  asked.push_back({1 << 12, kRingLl2, DecidedBy::kPolicy});  // The sweep has no measurement of this size.
  const auto regrets = RegretsOf(KeysFrom(asked), Sweep());
  ASSERT_EQ(regrets.size(), 1u) << "the other topology has one node";
  EXPECT_EQ(regrets[0].topology, "slow");
  EXPECT_EQ(regrets[0].calls, 6);
  EXPECT_EQ(regrets[0].counted_calls, 4);
  EXPECT_NEAR(regrets[0].chosen_s, 250e-6, 1e-12);
  EXPECT_NEAR(regrets[0].default_s, 400e-6, 1e-12);
  EXPECT_NEAR(regrets[0].best_s, 200e-6, 1e-12);
  EXPECT_NEAR(regrets[0].RegretShare(), 0.25, 1e-9);
}

TEST(Regret, TakesEveryFabricOfTheRanksWhereNobodyWasToldTheNodes) {
  std::vector<RunKeyAccount> keys(1);
  keys[0].key = {2, 1, Collective::kAllReduce, 1 << 20};
  keys[0].calls = 3;
  auto regrets = RegretsOf(keys, Sweep());
  ASSERT_EQ(regrets.size(), 2u);
  EXPECT_EQ(regrets[0].topology, "slow");
  EXPECT_NEAR(regrets[0].chosen_s, 300e-6, 1e-12) << "NCCL's own choices";
  EXPECT_NEAR(regrets[0].best_s, 150e-6, 1e-12);
  keys.push_back(keys[0]);
  keys[1].key.bytes = 1 << 10;
  keys[1].decided[DecidedBy::kNccl] = 1;
  regrets = RegretsOf(keys, Sweep());
  ASSERT_EQ(regrets.size(), 1u);
  EXPECT_EQ(regrets[0].topology, "one-node");
  keys[0].key.n_ranks = 4;
  EXPECT_TRUE(RegretsOf({keys[0]}, Sweep()).empty());
}

TEST(GuardAccount, AddsTheProcessesUp) {
  const auto account =
      GuardAccountOf(ParseMetrics("dynamiccl_table_versions_total{reason=\"search\",rank=\"0\"} 2\n"
                                  "dynamiccl_table_versions_total{reason=\"search\",rank=\"1\"} 1\n"
                                  "dynamiccl_table_versions_total{reason=\"adopt\",rank=\"0\"} 0\n"
                                  "dynamiccl_guarded_seconds_total{criticality=\"exposed\",rank=\"0\"} 3\n"
                                  "dynamiccl_guarded_seconds_total{criticality=\"unknown\",rank=\"0\"} 1\n"
                                  "dynamiccl_probing_seconds_total{rank=\"0\"} 0.04\n"));
  EXPECT_TRUE(account.guarded);
  EXPECT_EQ(account.versions, (std::map<std::string, double>{{"search", 3}}));
  EXPECT_DOUBLE_EQ(account.total_guarded_s(), 4);
  EXPECT_DOUBLE_EQ(account.probing_s, 0.04);
  EXPECT_FALSE(GuardAccountOf({}).guarded);
}

TEST(VersionReasons, OnlyOfWholeLines) {
  const auto reasons = VersionReasons(
      "host:1 [0] NCCL INFO table v2: search; 1 keys, 4 trials\n"
      "table v2: adopt; 1 keys, 0 trials\n"
      "table v3: AllReduce of 1048576 bytes, role unknown: NCCL's choice\n"
      "table v: slower; 1 keys, 0 trials\ntable v99999999999: x; 1 keys, 0 trials\n"
      "table v4\n\ntable v7: slower than NCCL; 2 keys, 0 trials");
  EXPECT_EQ(reasons, (std::map<uint32_t, std::string>{{2, "search"}, {7, "slower than NCCL"}}));
}

// Traces hold the low 8 bits of a version, but versions 2 and 258 are different.
TEST(VersionReasons, OfVersionsThatAre256Apart) {
  std::vector<Asked> asked;
  for (int version = 1; version <= 258; ++version)
    asked.push_back({1 << 20, kRingLl2, DecidedBy::kGuard, static_cast<uint8_t>(version)});
  const std::vector<TableVersion> versions = VersionsFrom(asked);
  ASSERT_EQ(versions.size(), 257u);
  EXPECT_EQ(versions.front().version, 2u);
  EXPECT_EQ(versions.back().version, 258u);
  const std::map<uint32_t, std::string> reasons{{2, "search"}, {258, "slower than NCCL"}, {7, "adopt"}};
  ASSERT_NE(ReasonOf(versions.front(), reasons), nullptr);
  EXPECT_EQ(*ReasonOf(versions.front(), reasons), "search");
  EXPECT_EQ(*ReasonOf(versions.back(), reasons), "slower than NCCL");
  // If a trace lost its beginning, only the low bits of its versions are known.
  EXPECT_EQ(ReasonOf({.version = 2, .counted = false}, reasons), nullptr) << "2 or 258";
  EXPECT_EQ(*ReasonOf({.version = 7, .counted = false}, reasons), "adopt");
}

// A number continues from the one before it, even if versions are skipped. Version 0 marks the end of the use
// of tables.
TEST(VersionReasons, NumbersGoOnFromTheOneBefore) {
  const std::vector<TableVersion> versions = VersionsFrom({{1 << 20, kRingLl2, DecidedBy::kGuard, 250},
                                                           {1 << 20, kRingLl2, DecidedBy::kGuard, 4},
                                                           {1 << 20, kRingLl2, DecidedBy::kGuard, 3},
                                                           {1 << 20, kRingLl2, DecidedBy::kGuard, 5}});
  ASSERT_EQ(versions.size(), 3u);
  EXPECT_EQ(versions[0].version, 260u);
  EXPECT_EQ(versions[1].version, 259u);
  EXPECT_EQ(versions[2].version, 261u);
  EXPECT_EQ(VersionsFrom({{1 << 20, kRingLl2, DecidedBy::kGuard, 5},
                          {1 << 20, kLeaveNcclAlone, DecidedBy::kNccl, 0}})[0]
                .version,
            0u);
}

TEST(RunReport, SaysOfEachMissingPartHowToGetIt) {
  const std::string html = RenderReport({.traces = {TraceFrom("run.ctrace", {{}, {}, {}})}});
  for (const char* how :
       {"dynamiccl sweep", "DYNAMICCL_MODE=adaptive", "DYNAMICCL_METRICS", "phase_marker.h"})
    EXPECT_THAT(html, HasSubstr(how));
}

TEST(RunReport, HasEveryPartAndNoMarkupOfItsInputs) {
  const std::vector<Asked> asked{{1 << 20, kRingLl2, DecidedBy::kPolicy, 1, 50},
                                 {1 << 20, kLeaveNcclAlone, DecidedBy::kGuard, 2, 100},
                                 {1 << 12, kRingSimple4, DecidedBy::kTrial, 2, 10}};
  const std::string html = RenderReport({.traces = {TraceFrom("<script>.ctrace", asked)},
                                         .measurements = {{"s.measurements", Sweep()}},
                                         .version_reasons = {{2, "<b>slow</b>"}}});
  for (const char* part :
       {"Fingerprints by stage", "<h3>Timeline", "who made them", "Choices over size and ranks", "<h3>Regret",
        "Default against ours", "<h3>Structure firings", "The guard&#39;s account"})
    EXPECT_THAT(html, HasSubstr(part));
  for (const char* markup : {"<script", "<img", "<b>"}) EXPECT_THAT(html, Not(HasSubstr(markup)));
  EXPECT_THAT(html, HasSubstr("left to NCCL in place of Ring LL x2"));
}

TEST(RunReport, BeginsWithTheAnswer) {
  const std::vector<Asked> ours{{1 << 20, kRingLl2, DecidedBy::kPolicy}};
  const std::vector<Asked> left{{1 << 20, kLeaveNcclAlone, DecidedBy::kNccl}};
  const NamedMeasurements sweep{"s.measurements", Sweep()};
  const std::string won = RenderReport({.traces = {TraceFrom("run.ctrace", ours)}, .measurements = {sweep}});
  EXPECT_LT(won.find("<h2>The answer"), won.find("<h2>Runs"));
  EXPECT_THAT(won,
              HasSubstr("run.ctrace: 100 % of the calls got another choice than NCCL&#39;s own. By the sweep "
                        "of slow the best choices take -50 % of NCCL&#39;s time, those of this run -50 %."));
  EXPECT_THAT(
      RenderReport({.traces = {TraceFrom("run.ctrace", left)}}),
      HasSubstr("run.ctrace: NCCL chose for every call. Whether others would be faster is not in these "
                "files: dynamiccl pilot"));
}

TEST(RunReport, StagesOfSeveralRunsStayApartAndNameTheirRun) {
  const std::vector<Asked> calls{{1 << 20, kRingLl2, DecidedBy::kPolicy}};
  const std::string html =
      RenderReport({.traces = {TraceFrom("first.ctrace", calls), TraceFrom("second.ctrace", calls)}});
  for (const char* const bar : {"first.ctrace: unlabelled", "second.ctrace: unlabelled"})
    EXPECT_THAT(html, HasSubstr(bar));
  EXPECT_THAT(html, ContainsRegex("<td[^>]*>second.ctrace</td><td[^>]*>unlabelled</td>"));
  EXPECT_THAT(RenderReport({.traces = {TraceFrom("first.ctrace", calls)}}),
              Not(HasSubstr("first.ctrace: unlabelled")));
}

TEST(RunReport, ATraceWithoutProcessesGivesAPage) {
  const ReportInputs empty{.traces = {{"empty.ctrace", {}}}};
  EXPECT_THAT(RenderReport(empty), HasSubstr("</html>"));
  EXPECT_EQ(ReportJson(empty)["runs"].size(), 1u);
}

TEST(RunTables, HaveAHeadAndQuoteWhatNeedsIt) {
  const ReportInputs inputs{
      .traces = {TraceFrom("a,\"b\".ctrace", {{1 << 20, kRingLl2, DecidedBy::kPolicy}})}};
  const auto tables = ReportTables(inputs);
  EXPECT_EQ(tables.size(), 4u);
  EXPECT_THAT(tables.at("keys.csv"),
              HasSubstr("\r\n\"a,\"\"b\"\".ctrace\",2,2,AllReduce,1048576,1,Ring LL x2,,,0,1,"));
  for (const auto& [name, text] : tables) EXPECT_THAT(text, testing::StartsWith("run,")) << name;
}

// The builder's records are 1 ns apart.
TEST(MarkedStepMs, IsTheMedianAfterTheFirstTwo) {
  SectionBuilder builder(0, 2);
  for (uint64_t step = 0; step < 6; ++step) {
    builder.Add(StepRecord({.step = step, .phase = Phase::kForward}));
    builder.Call(step, Collective::kAllReduce, 64);
    builder.Add(StepRecord({.step = step, .phase = Phase::kBackward}));
  }
  const std::optional<double> step_ms = MarkedStepMs(MarksOf(builder.section()));
  ASSERT_TRUE(step_ms);
  EXPECT_DOUBLE_EQ(*step_ms, 3e-6);
}

// Steps of 8 samples take 80 ns. Steps of 16 samples take 96 ns, so steps become longer but the time per
// sample falls.
TEST(SampleTimes, FallWhereABatchGrowsMoreThanItsStep) {
  std::vector<SamplesView> samples;
  int64_t now_ns = 0;
  for (int step = 0; step < 2 + 8 + 8; ++step) {
    const bool large = step >= 2 + 8;
    samples.push_back({now_ns, large ? uint64_t{16} : uint64_t{8}});
    now_ns += large ? 96 : 80;
  }
  samples.push_back({now_ns, 16});
  const auto times = SampleTimesOf(samples);
  ASSERT_TRUE(times);
  EXPECT_DOUBLE_EQ(times->first_ms, 10e-6);
  EXPECT_DOUBLE_EQ(times->last_ms, 6e-6);
  EXPECT_EQ(times->first_samples, 8u);
  EXPECT_EQ(times->last_samples, 16u);
}

TEST(SampleTimes, AreNotKnownAfterFewSteps) {
  std::vector<SamplesView> samples;
  for (int step = 0; step < 6; ++step) samples.push_back({80 * step, 8});
  EXPECT_FALSE(SampleTimesOf(samples));
  samples.push_back({480, 8});
  EXPECT_TRUE(SampleTimesOf(samples));
}

TEST(MarkedStepMs, IsNotKnownWithoutMarks) {
  SectionBuilder builder(0, 2);
  builder.Call(0, Collective::kAllReduce, 64).Call(1, Collective::kAllReduce, 64);
  EXPECT_FALSE(MarkedStepMs(MarksOf(builder.section())));
}

}  // namespace
}  // namespace dynamiccl
