// SPDX-License-Identifier: Apache-2.0
// Compares JsonDocument with nlohmann's parser, on whole and on damaged texts.
#include "traces/import/json_document.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace dynamiccl {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kTexts[] = {
    R"({"a": [1, -2, 3.5, 1e3, -0, 18446744073709551615, 9223372036854775808, 12345678901234567890123],)"
    R"( "b": {"c": null, "d": true, "e": false, "": {}}, "f": [], "g": [[], {}, [[1]]], "a": "last"})",
    R"(["", "x", "\"quoted\"\\\n", "A\u0041\ud83d\ude00", "über", "7", "-7.5", "1e5"])",
    R"( [ 0 , 0.1, 1E-400, 2.5e+10 , {"x y" : [ { "z" : "\/" } ] } ] )",
    "7",
    "\"text\"",
    "null"};

bool Same(JsonValue value, const Json& wanted) {
  if (value.is_string()) return wanted == value.Text();
  if (value.is_number()) {
    const auto number = value.Number(HUGE_VAL);
    const auto whole = value.Unsigned();
    return wanted.is_number() && number == wanted.get<double>() &&
           whole.has_value() == wanted.is_number_unsigned() && (!whole || *whole == wanted.get<uint64_t>());
  }
  bool same = value.size() == (wanted.is_array() ? wanted.size() : value.size());
  if (value.is_array()) {
    for (size_t i = 0; same && i < value.size(); ++i) same = wanted.is_array() && Same(value[i], wanted[i]);
  } else if (value.is_object()) {
    value.EachMember([&](const std::string& key, JsonValue) {
      same = same && wanted.contains(key) && Same(value[key], wanted[key]);
    });
    same = same && wanted.is_object();
  } else {
    same = value.raw() == wanted.dump();
  }
  return same;
}

TEST(JsonDocument, ReadsWhatNlohmannReads) {
  JsonDocument document;
  for (const std::string_view text : kTexts) {
    const auto value = document.Parse(text);
    ASSERT_TRUE(value) << text;
    EXPECT_TRUE(Same(*value, Json::parse(text))) << text;
  }
}

TEST(JsonDocument, RefusesTheDamagedTextsThatNlohmannRefuses) {
  constexpr std::string_view kPieces[] = {"\"",   "\\",   ",",     ":",   "{",   "}",    "[",  "]",
                                          "0",    "-",    ".",     "e",   "+",   " ",    "\n", "\x01",
                                          "\xff", "\xc3", "\\u00", "tru", "nul", "1e999"};
  std::mt19937 random(7);
  JsonDocument document;
  size_t refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text(kTexts[random() % std::size(kTexts)]);
    const size_t at = random() % text.size();
    const std::string_view piece = kPieces[random() % std::size(kPieces)];
    text.replace(at, random() % 3, piece);
    const bool accepted = Json::accept(text);
    const auto value = document.Parse(text);
    ASSERT_EQ(value.has_value(), accepted) << text;
    if (value) {
      ASSERT_TRUE(Same(*value, Json::parse(text))) << text;
    }
    refused += !accepted;
    if (!accepted) {
      ASSERT_LE(document.position(), text.size() + 1);
    }
  }
  EXPECT_GT(refused, 5000u);
}

TEST(JsonDocument, AMissingValueIsNoErrorByItself) {
  JsonDocument document;
  const JsonValue value = *document.Parse(R"({"text": "x", "none": null, "list": [4, "5", 6.0, "no"]})");
  EXPECT_FALSE(value["other"].exists());
  EXPECT_TRUE(value["none"].exists());
  EXPECT_FALSE(value["none"].is_set());
  EXPECT_EQ(value["other"]["deeper"][3].Text(), "");
  EXPECT_EQ(value["text"].Integer(), std::nullopt);
  EXPECT_EQ(value["list"][0].Integer(), 4);
  EXPECT_EQ(value["list"][1].Integer(), 5);
  EXPECT_EQ(value["list"][2].Integer(), 6);
  EXPECT_EQ(value["list"][3].Integer(), std::nullopt);
  EXPECT_EQ(value["list"][4].Integer(), std::nullopt);
}

TEST(JsonDocument, ShapesGiveElements) {
  JsonDocument document;
  const auto elements = [&](std::string_view text) { return ElementsOfShapes(*document.Parse(text)); };
  EXPECT_EQ(elements("[[3,4],[5]]"), 17);
  EXPECT_EQ(elements("[[]]"), 1);
  EXPECT_EQ(elements("[[[2,3],[4]],[5]]"), 15);
  for (const char* const none : {"[]", "{}", "[4]", "[[-1]]", "[[4611686018427387904, 4]]"})
    EXPECT_EQ(elements(none), std::nullopt) << none;
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_EQ(elements(deep), std::nullopt);
}

}  // namespace
}  // namespace dynamiccl
