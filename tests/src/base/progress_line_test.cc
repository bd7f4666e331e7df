// SPDX-License-Identifier: Apache-2.0
#include "src/base/progress_line.h"

#include <gtest/gtest.h>

#include <memory>

namespace dynamiccl {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

struct ManualClock final : Clock {
  int64_t Now() const override { return now_ns; }
  int64_t now_ns = 0;
};

// A file without a name, whose content a test can read back.
class WrittenFile {
 public:
  std::FILE* stream() const { return file_.get(); }
  std::string Text() const {
    std::rewind(file_.get());
    std::string text(4096, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file_.get()));
    return text;
  }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{std::tmpfile(), std::fclose};
};

TEST(ProgressLine, ALogFileGetsALineEveryFiveSeconds) {
  WrittenFile file;
  ManualClock clock;
  ProgressLine progress(file.stream(), false, clock);
  progress.Show("begins");
  for (int iteration = 1; iteration <= 12; ++iteration) {
    clock.now_ns += kSecondNs;
    if (progress.IsDue()) progress.Show("iteration " + std::to_string(iteration));
  }
  progress.Clear();
  EXPECT_EQ(file.Text(), "dynamiccl: begins\ndynamiccl: iteration 5\ndynamiccl: iteration 10\n");
}

TEST(ProgressLine, ATerminalGetsOneLineThatGoesAtTheEnd) {
  WrittenFile file;
  ManualClock clock;
  {
    ProgressLine progress(file.stream(), true, clock);
    progress.Show("begins");
    EXPECT_FALSE(progress.IsDue());
    clock.now_ns += kSecondNs / 2;
    EXPECT_TRUE(progress.IsDue());
    progress.Show("half");
  }
  EXPECT_EQ(file.Text(), "\r\x1b[Kdynamiccl: begins\r\x1b[Kdynamiccl: half\r\x1b[K");
}

TEST(TimeLeftText, FollowsFromThePiecesThatAreDone) {
  EXPECT_EQ(TimeLeftText(10, 0, 100), "");
  EXPECT_EQ(TimeLeftText(10, 25, 100), ", about 30 s left");
  EXPECT_EQ(TimeLeftText(60, 1, 5), ", about 4 min left");
}

}  // namespace
}  // namespace dynamiccl
