// SPDX-License-Identifier: Apache-2.0
#include "tools/demo/demo_journal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

class DemoJournalTest : public ::testing::Test {
 protected:
  DemoJournalTest()
      : folder_(fs::path(::testing::TempDir()) / ("demo_journal_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~DemoJournalTest() override { fs::remove_all(folder_); }

  std::string Path() const { return (folder_ / "demo.journal").string(); }
  std::string Touch(const std::string& name) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << name;
    return path;
  }
  DemoJournal Open(const std::string& plan = "whole demo") const {
    return DemoJournal::Open(Path(), plan).value();
  }
  // Finishes the runs "a", "b" and "c", each with a file of its name. The demo is killed after that.
  void FinishThree() const {
    DemoJournal journal = Open();
    for (const char* key : {"a", "b", "c"}) {
      ASSERT_FALSE(journal.SkipFinished(key, {Touch(key)}).value());
      ASSERT_TRUE(journal.Finish(key).has_value());
    }
  }
  std::string Content() const {
    std::ifstream file(Path());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Replace(const std::string& content) const { std::ofstream(Path(), std::ios::trunc) << content; }
  // Returns how many of the three runs are skipped, in their order.
  int Skipped(DemoJournal& journal) const {
    int skipped = 0;
    for (const char* key : {"a", "b", "c"})
      skipped += journal.SkipFinished(key, {(folder_ / key).string()}).value();
    return skipped;
  }

  fs::path folder_;
};

TEST_F(DemoJournalTest, GoesOnAfterTheRunsThatFinished) {
  FinishThree();
  DemoJournal journal = Open();
  EXPECT_EQ(journal.found(), 3U);
  EXPECT_EQ(Skipped(journal), 3);
  EXPECT_FALSE(journal.SkipFinished("d", {}).value());
  ASSERT_TRUE(journal.Finish("d").has_value());
  EXPECT_EQ(Open().found(), 4U);
}

TEST_F(DemoJournalTest, AChangedRunBeginsAnewWithAllThatFollow) {
  FinishThree();
  DemoJournal journal = Open();
  EXPECT_TRUE(journal.SkipFinished("a", {}).value());
  EXPECT_FALSE(journal.SkipFinished("changed", {}).value());
  ASSERT_TRUE(journal.Finish("changed").has_value());
  EXPECT_FALSE(journal.SkipFinished("c", {}).value());
  EXPECT_EQ(Open().found(), 2U) << "a and changed";
}

TEST_F(DemoJournalTest, ARunWhoseOutputIsGoneBeginsAnew) {
  FinishThree();
  fs::remove(folder_ / "b");
  DemoJournal journal = Open();
  EXPECT_EQ(Skipped(journal), 1);
}

TEST_F(DemoJournalTest, AnotherPlanOrACompleteDemoBeginsAnew) {
  FinishThree();
  EXPECT_EQ(Open("quick demo").found(), 0U);
  EXPECT_EQ(Open().found(), 0U) << "the file is the quick demo's now";
  FinishThree();
  Open().Remove();
  EXPECT_EQ(Open().found(), 0U);
}

TEST_F(DemoJournalTest, CutAnywhereItKeepsTheWholeRecordsOrNone) {
  FinishThree();
  const std::string whole = Content();
  for (size_t length = 0; length <= whole.size(); ++length) {
    Replace(whole.substr(0, length));
    const size_t lines =
        static_cast<size_t>(std::count(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length), '\n'));
    EXPECT_EQ(Open().found(), lines == 0 ? 0 : lines - 1) << length;
  }
}

TEST_F(DemoJournalTest, AnyChangedByteNeverSkipsARunThatDidNotFinish) {
  FinishThree();
  const std::string whole = Content();
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x15);
    Replace(damaged);
    DemoJournal journal = Open();
    // Without a line break, two records become one.
    const size_t last_break = whole.rfind('\n', whole.size() - 2);
    EXPECT_EQ(Skipped(journal), i < last_break ? 0 : i == last_break ? 1 : 2) << i;
  }
}

TEST_F(DemoJournalTest, CannotBeWrittenIsAnErrorThatNamesTheFile) {
  const auto journal = DemoJournal::Open((folder_ / "missing" / "demo.journal").string(), "plan");
  ASSERT_FALSE(journal.has_value());
  EXPECT_NE(journal.error().message.find("missing/demo.journal"), std::string::npos);
}

}  // namespace
}  // namespace dynamiccl
