// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/output_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace dynamiccl {
namespace {

// Returns the hint for a job with this output, without the beginning of the sentence.
std::string QuoteOf(const std::string& output) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("dynamiccl-job." + std::to_string(::getpid()) + ".log");
  std::ofstream(path, std::ios::binary) << output;
  const std::string hint = OutputHint(path);
  std::filesystem::remove(path);
  const std::string begin = "its output is in " + path;
  EXPECT_TRUE(hint.starts_with(begin)) << hint;
  return hint.substr(begin.size());
}

TEST(OutputHint, QuotesTheLastLineWithALetter) {
  EXPECT_EQ(QuoteOf(""), "");
  EXPECT_EQ(QuoteOf("=====\n"), "");
  EXPECT_EQ(QuoteOf("one\nKeyError: 'x'\n=====\n"), " and ends with: KeyError: 'x'");
  EXPECT_EQ(QuoteOf("one\r\ntwo\tx\r\n"), " and ends with: two x");
}

TEST(OutputHint, QuotesTheLastStateOfAProgressBar) {
  std::string bar;
  for (int step = 0; step <= 500; ++step) bar += "\rstep " + std::to_string(step) + " of 500";
  EXPECT_EQ(QuoteOf(bar), " and ends with: step 500 of 500");
  EXPECT_EQ(QuoteOf(bar + "\r   \r\x1b[K\n"), " and ends with: step 500 of 500");
}

TEST(OutputHint, LeavesOutWholeEscapeSequences) {
  EXPECT_EQ(QuoteOf("\x1b[1;31mRuntimeError\x1b[0m: broken\n\x1b[0m"),
            " and ends with: RuntimeError: broken");
  EXPECT_EQ(QuoteOf("\x1b]0;title\a\x1b]8;;link\x1b\\broken\x1b[?25h\x1b"
                    "7\n"),
            " and ends with: broken");
  EXPECT_EQ(QuoteOf("broken\n\x1b]0;no end\n\x1b["), " and ends with: broken");
  EXPECT_EQ(QuoteOf("broken\n\x1b"), " and ends with: broken");
  EXPECT_EQ(QuoteOf("broken\x1b(B\x1b[m\n"), " and ends with: broken");
}

TEST(OutputHint, CutsBetweenCharacters) {
  const std::string two_bytes = "\u00e4";
  std::string text = "x";
  for (int i = 0; i < 3000; ++i) text += two_bytes;
  EXPECT_EQ(QuoteOf(text.substr(0, 401)), " and ends with: " + text.substr(0, 199));
  const std::string behind = QuoteOf(text + "xy");
  EXPECT_TRUE(behind.starts_with(" and ends with: " + two_bytes)) << behind;
}

}  // namespace
}  // namespace dynamiccl
