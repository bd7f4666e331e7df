// SPDX-License-Identifier: Apache-2.0
// Tests journals of tunes. An interrupted tune finds the starts of its own plan again and no others.
#include "tools/tune/tune_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;

class TuneJournalTest : public ::testing::Test {
 protected:
  TuneJournalTest() { std::filesystem::remove(path_); }
  TuneJournal Open(const std::string& plan = "plan") { return std::move(*TuneJournal::Open(path_, plan)); }
  void AddTwo() {
    TuneJournal journal = Open();
    EXPECT_FALSE(journal.FoundShape());
    journal.SetShape({.most = 5,
                      .level_rounds = 2,
                      .forecasts = {{.setting = "bucket_cap_mb=5", .ratio = 0.1 + 0.2},
                                    {.setting = "bucket_cap_mb=1000", .not_tried = "it loses"}}});
    ASSERT_TRUE(journal.Add({.turn = 1, .candidate = "default", .step_ms = 10.5, .seconds = 4}));
    ASSERT_TRUE(journal.Add({.turn = 1, .candidate = "ring/ll", .failure = "failed"}));
  }

  const std::string path_ =
      ::testing::TempDir() + "tune_journal_test." + std::to_string(::getpid()) + ".journal";
};

TEST_F(TuneJournalTest, FindsStartsInTheirOrder) {
  AddTwo();
  TuneJournal journal = Open();
  EXPECT_EQ(journal.found(), 2u);
  const auto shape = journal.FoundShape();
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->most, 5u);
  ASSERT_EQ(shape->forecasts.size(), 2u);
  EXPECT_EQ(shape->forecasts[0].ratio, 0.1 + 0.2);
  EXPECT_EQ(shape->forecasts[1].not_tried, "it loses");
  EXPECT_EQ(journal.Next(1, "default")->step_ms, 10.5);
  EXPECT_EQ(journal.Next(1, "ring/ll")->failure, "failed");
  EXPECT_FALSE(journal.Next(2, "default"));
}

TEST_F(TuneJournalTest, AStartThatDiffersEndsWhatIsFound) {
  AddTwo();
  {
    TuneJournal journal = Open();
    EXPECT_TRUE(journal.Next(1, "default"));
    EXPECT_FALSE(journal.Next(1, "tree/ll"));
    ASSERT_TRUE(journal.Add({.turn = 1, .candidate = "tree/ll"}));
  }
  TuneJournal journal = Open();
  EXPECT_TRUE(journal.Next(1, "default"));
  EXPECT_TRUE(journal.Next(1, "tree/ll"));
}

// The results of earlier processes stay until the new journal, which also contains them, is complete.
TEST_F(TuneJournalTest, KeepsTheEarlierResultsIfItCannotGoOn) {
  AddTwo();
  std::filesystem::create_directory(path_ + ".new");
  {
    TuneJournal journal = Open();
    EXPECT_TRUE(journal.Next(1, "default"));
    EXPECT_TRUE(journal.Next(1, "ring/ll"));
    EXPECT_FALSE(journal.Add({.turn = 2, .candidate = "default"}));
  }
  EXPECT_EQ(Open().found(), 2u);
  std::filesystem::remove(path_ + ".new");
  TuneJournal journal = Open();
  EXPECT_TRUE(journal.Next(1, "default"));
  EXPECT_TRUE(journal.Next(1, "ring/ll"));
  ASSERT_TRUE(journal.Add({.turn = 2, .candidate = "default"}));
  EXPECT_EQ(Open().found(), 3u);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

// A command line may contain any bytes, such as a file name in Latin-1.
TEST_F(TuneJournalTest, PlansThatAreNotUtf8GoOnAndAreToldApart) {
  {
    TuneJournal journal = Open("train \xe9.py");
    journal.SetShape({.most = 5, .level_rounds = 2});
    ASSERT_TRUE(journal.Add({.turn = 1, .candidate = "default", .seen = "\xff", .seconds = 4}));
  }
  EXPECT_EQ(Open("train \xe9.py").found(), 1u);
  const auto other = TuneJournal::Open(path_, "train \xe8.py");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("another unfinished tune"), std::string::npos);
}

TEST_F(TuneJournalTest, ATornLastLineIsRunAgain) {
  AddTwo();
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 3);
  EXPECT_EQ(Open().found(), 1u);
}

TEST_F(TuneJournalTest, DamageBeginsAnew) {
  AddTwo();
  std::filesystem::resize_file(path_, 20);
  EXPECT_EQ(Open().found(), 0u);
}

TEST_F(TuneJournalTest, TheErrorAboutAnotherTuneNamesWhatChanged) {
  const auto hint = [&](const std::string& first, const std::string& second) {
    std::filesystem::remove(path_);
    TuneJournal journal = Open(first);
    journal.SetShape({.most = 5, .level_rounds = 2, .forecasts = {}});
    EXPECT_TRUE(journal.Add({.turn = 1, .candidate = "default", .step_ms = 10.5, .seconds = 4}));
    return TuneJournal::Open(path_, second).error().hint;
  };
  EXPECT_THAT(hint("-- a.py (files 1, environment 1)", "-- b.py (files 1, environment 1)"),
              HasSubstr("the options or the command changed"));
  EXPECT_THAT(hint("-- a.py (files 1, environment 1)", "-- a.py (files 2, environment 1)"),
              HasSubstr("the script or another file changed"));
  EXPECT_THAT(hint("-- a.py (files 1, environment 1)", "-- a.py (files 1, environment 2)"),
              HasSubstr("variables such as NCCL_ALGO changed"));
}

TEST_F(TuneJournalTest, OfAnotherTuneIsAnErrorAndStays) {
  AddTwo();
  const auto other = TuneJournal::Open(path_, "another plan");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message, path_ + " is of another unfinished tune: plan");
  EXPECT_FALSE(other.error().hint.empty());
  EXPECT_EQ(Open().found(), 2u);
}

}  // namespace
}  // namespace dynamiccl
