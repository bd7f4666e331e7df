// SPDX-License-Identifier: Apache-2.0
#include "traces/format/trace_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
