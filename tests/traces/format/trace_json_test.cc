// SPDX-License-Identifier: Apache-2.0
#include "traces/format/trace_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/traces/any_trace.h"
#include "traces/format/trace_reader.h"
#include "traces/format/trace_writer.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;

TEST(TraceJson, BinaryToTextAndBackIsExact) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Trace trace = AnyTrace(seed);
    const auto text = FormatTraceJson(trace);
    ASSERT_TRUE(text);
    const auto parsed = ParseTraceJson(*text, "x");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(*parsed, trace) << "seed " << seed;
    EXPECT_EQ(FormatTrace(*parsed), FormatTrace(trace));
  }
}

TEST(TraceJson, TextToBinaryAndBackIsExact) {
  const std::string text = *FormatTraceJson(AnyTrace(7));
  const auto binary = ParseTrace(FormatTrace(*ParseTraceJson(text, "x")), "x", TraceReading::kStrict);
  ASSERT_TRUE(binary);
  EXPECT_EQ(*FormatTraceJson(*binary), text);
}

TEST(TraceJson, SpellsNamesOut) {
  SectionBuilder builder(1, 2);
  builder.Call(0, Collective::kReduceScatter, 4096);
  builder.section().records.back().labels = PackLabels(Phase::kBackward, Role::kGradientReduce);
  const std::string text = *FormatTraceJson({{builder.section()}});
  EXPECT_THAT(text, HasSubstr(R"("kind":"Collective")"));
  EXPECT_THAT(text, HasSubstr(R"("collective":"ReduceScatter")"));
  EXPECT_THAT(text, HasSubstr(fmt::format(R"("phase":"{}")", Name(Phase::kBackward))));
  EXPECT_THAT(text, testing::Not(HasSubstr("algorithm")));
}

TEST(TraceJson, EveryKindOfRecordComesBack) {
  SectionBuilder builder(0, 2);
  builder.Call(0, Collective::kAllReduce, 64).Call(0, Collective::kSend, 8);
  builder.Add(DecisionRecord(0, {}, {.asked_ns = 0, .config = {Algorithm::kNvlsTree, Protocol::kLL128, 64}}));
  builder.Add(
      StepRecord({.marked_ns = 0, .step = 9, .phase = Phase::kBackward, .stage = ZeroStage::kStage3}));
  builder.Add(MemoryRecord({.marked_ns = 0, .free_bytes = 1, .total_bytes = UINT64_MAX}));
  builder.Add(
      WaitedShareRecord({.found_ns = 0, .bytes = 4096, .role = Role::kGradientReduce, .share = 0.25}));
  builder.Add(EmptyRecord(RecordKind::kCommunicatorEnd, 0));
  std::set<uint16_t> kinds;
  for (const TraceRecord& record : builder.section().records) kinds.insert(record.kind);
  EXPECT_EQ(kinds.size(), 8u) << "a kind is missing here";
  const Trace trace{{builder.section()}};
  EXPECT_EQ(*ParseTraceJson(*FormatTraceJson(trace), "x"), trace);
}

TEST(TraceJson, NumbersThatDoNotFitAreErrors) {
  for (const char* field : {R"("algorithm":128)", R"("collective":256)", R"("collective":-1)", R"("phase":8)",
                            R"("role":32)", R"("op":4294967296)", R"("duration_source":300)"}) {
    const std::string text = fmt::format(
        R"({{"magic":"dynamiccl-trace","version":1}}
{{"kind":"section","rank":0,"world":1,"process_id":1,"mirrored":false,"imported":false,"host":"","library":"","writer":"","opened":[0,0],"closed_at":[0,0],"closed":true,"lost":0}}
{{"kind":"Step","issued_ns":0,{}}}
)",
        field);
    EXPECT_THAT(ParseTraceJson(text, "x.jsonl").error().message, HasSubstr("x.jsonl:3: ")) << field;
  }
}

TEST(TraceJson, TextThatIsNoUtf8IsAnError) {
  TraceSection section;
  section.host = "node\xff";
  EXPECT_THAT(FormatTraceJson({{section}}).error().message, HasSubstr("UTF-8"));
}

TEST(TraceJson, EveryTruncationIsAnError) {
  const std::string text = *FormatTraceJson(AnyTrace(8));
  for (size_t length = 0; length < text.size(); length += 1 + length % 7) {
    EXPECT_FALSE(ParseTraceJson(std::string_view(text).substr(0, length), "x")) << "length " << length;
  }
}

TEST(TraceJson, DamageIsAnErrorThatNamesTheLine) {
  std::string text = *FormatTraceJson(AnyTrace(9));
  text[text.find("\"host\"") + 9] = '#';
  EXPECT_THAT(ParseTraceJson(text, "x.jsonl").error().message, HasSubstr("damaged"));
  EXPECT_THAT(
      ParseTraceJson("{\"magic\":\"dynamiccl-trace\",\"version\":1}\n{\"kind\":\"Step\"}\n", "x.jsonl")
          .error()
          .message,
      HasSubstr("x.jsonl:2: a record before the first section"));
}

}  // namespace
}  // namespace dynamiccl
