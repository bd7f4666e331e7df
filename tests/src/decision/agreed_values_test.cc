// SPDX-License-Identifier: Apache-2.0
#include "src/decision/agreed_values.h"

#include <gmock/gmock.h>

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;

TEST(AgreedValues, NameIsShortAndPlain) {
  for (const char* name : {"b", "bucket_mb", "Stage3.window-2", "0123456789012345678901234567890"})
    EXPECT_TRUE(IsValueName(name)) << name;
  for (const char* name : {"", "a b", "a=b", "\xc3\xa4", "01234567890123456789012345678901"})
    EXPECT_FALSE(IsValueName(name)) << name;
}

TEST(AgreedValues, ValueIsReadOrRefusedByItsPart) {
  EXPECT_EQ(*ParseValue("bucket_mb=25"), (ProposedValue{"bucket_mb", 25}));
  EXPECT_EQ(*ParseValue(" window = -3 \r"), (ProposedValue{"window", -3}));
  EXPECT_EQ(ParseValue("a=9223372036854775807")->value, INT64_MAX);
  EXPECT_THAT(ParseValue("bucket_mb").error().message, HasSubstr("not NAME=VALUE"));
  EXPECT_THAT(ParseValue("a b=1").error().message, HasSubstr("'a b' is no name of a value"));
  for (const char* wrong : {"a=", "a=1.5", "a=9223372036854775808", "a=1 2", "a=+1"})
    EXPECT_THAT(ParseValue(wrong).error().message, HasSubstr("for a is no whole number")) << wrong;
}

TEST(AgreedValues, FileIsReadAsWritten) {
  const AgreedValues values{{"a", 1}, {"b", -2}};
  EXPECT_EQ(*ParseValues(ValuesText(values), "f"), values);
  EXPECT_EQ(*ParseValues("# by hand\n\n a=0\na = 1\nb=-2", "f"), values);
  EXPECT_EQ(*ParseValues("", "f"), AgreedValues{});
}

TEST(AgreedValues, LevelOfMemoryPressureIsAValue) {
  EXPECT_EQ(MemoryPressureIn({{"memory_pressure", 2}, {"b", 1}}), MemoryPressure::kHigh);
  EXPECT_EQ(MemoryPressureIn({{"memory_pressure", 0}}), MemoryPressure::kLow);
  for (const int64_t wrong : {int64_t{-1}, int64_t{4}, INT64_MAX})
    EXPECT_EQ(MemoryPressureIn({{"memory_pressure", wrong}}), MemoryPressure::kUnknown) << wrong;
  EXPECT_EQ(MemoryPressureIn({{"b", 1}}), MemoryPressure::kUnknown);
}

TEST(AgreedValues, WrongLineOfAFileIsNamed) {
  EXPECT_THAT(ParseValues("a=1\n\nb=c\n", "values").error().message, HasSubstr("values:3: 'c' for b"));
  std::string many;
  for (size_t i = 0; i <= kMaxAgreedValues; ++i) many += "v" + std::to_string(i) + "=1\n";
  EXPECT_THAT(ParseValues(many, "values").error().message, HasSubstr("values:65: more than 64 values"));
}

}  // namespace
}  // namespace dynamiccl
