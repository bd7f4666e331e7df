// SPDX-License-Identifier: Apache-2.0
#include "traces/format/sweep_journal.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace dynamiccl {
namespace {

class SweepJournalTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "sweep." + testing::UnitTest::GetInstance()->current_test_info()->name() +
            ".journal";
    std::filesystem::remove(path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  static Measurement Row(uint64_t bytes, std::vector<float> us) {
    return {"t", Collective::kAllGather, bytes, {Algorithm::kRing, Protocol::kLL, 2}, false, std::move(us)};
  }

  void WriteSome() {
    auto writer = SweepJournalWriter::Create(path_, "active t");
    ASSERT_TRUE(writer);
    CostModelInput model;
    model.fabric.n_ranks = 2;
    model.fabric.n_nodes = 1;
    model.fabric.max_channels = 4;
    ASSERT_TRUE(writer->AddContext("lib 1", "a machine", {"t", model}));
    ASSERT_TRUE(writer->AddVisit(Row(1024, {1.5f, 2.5f}), 0.25));
    ASSERT_TRUE(writer->AddVisit(Row(4096, {3, 4}), 0.25));
    ASSERT_TRUE(writer->EndSlice("t", 2, 0.125, false));
    ASSERT_TRUE(writer->AddVisit(Row(1024, {1, 2}), 0.5));
  }

  std::string Content() const {
    std::ifstream file(path_, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void SetContent(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

  std::string path_;
};

TEST_F(SweepJournalTest, GathersTheRepeatsOfACell) {
  WriteSome();
  const auto journal = ReadSweepJournal(path_);
  ASSERT_TRUE(journal) << Describe(journal.error());
  EXPECT_EQ(journal->plan, "active t");
  EXPECT_EQ(journal->measured.library, "lib 1");
  ASSERT_EQ(journal->measured.rows.size(), 2u);
  EXPECT_EQ(journal->measured.rows[0].microseconds, (std::vector<float>{1.5f, 2.5f, 1, 2}));
  EXPECT_EQ(journal->seconds, 2.5);  // the time of the slice, not of its visits, plus the visit after it
  EXPECT_EQ(journal->promises.at("t"), 0.125);
  EXPECT_FALSE(journal->complete.at("t"));
  EXPECT_FALSE(journal->torn);
}

TEST_F(SweepJournalTest, CutAtAnyByteItGoesOnWithTheWholeRecordsBeforeIt) {
  WriteSome();
  const std::string whole = Content();
  const size_t header = whole.find('\n') + 1;
  for (size_t length = 0; length <= whole.size(); ++length) {
    SetContent(whole.substr(0, length));
    const auto journal = ReadSweepJournal(path_);
    if (length < header) {
      EXPECT_FALSE(journal) << length;
      continue;
    }
    ASSERT_TRUE(journal) << length << Describe(journal.error());
    EXPECT_EQ(journal->whole_bytes, whole.rfind('\n', length - 1) + 1);
    EXPECT_EQ(journal->torn, journal->whole_bytes != length);
    auto writer = SweepJournalWriter::Continue(path_, *journal);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->EndSlice("u", 1, 0, true));
    const auto further = ReadSweepJournal(path_);
    ASSERT_TRUE(further) << length << Describe(further.error());
    EXPECT_TRUE(further->complete.at("u"));
    EXPECT_EQ(further->measured.rows, journal->measured.rows);
  }
}

TEST_F(SweepJournalTest, AnyFlippedByteBeforeTheLastRecordIsSaid) {
  WriteSome();
  const std::string whole = Content();
  const size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  // The newline before the last record is not damaged. Without it, the last two records would be one torn
  // record.
  for (size_t at = 0; at + 1 < last; ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    SetContent(damaged);
    const auto journal = ReadSweepJournal(path_);
    ASSERT_FALSE(journal) << at;
    EXPECT_EQ(journal.error().kind, ErrorKind::kCorrupt);
  }
}

TEST_F(SweepJournalTest, AFlippedByteInTheLastRecordLosesThatRecordAlone) {
  WriteSome();
  const std::string whole = Content();
  const size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (size_t at = last; at + 1 < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    SetContent(damaged);
    const auto journal = ReadSweepJournal(path_);
    ASSERT_TRUE(journal) << at << Describe(journal.error());
    EXPECT_EQ(journal->whole_bytes, last);
  }
}

TEST_F(SweepJournalTest, OtherVersionsAndOtherFilesAreRefused) {
  EXPECT_EQ(ReadSweepJournal(path_).error().kind, ErrorKind::kNotFound);
  SetContent("");
  EXPECT_EQ(ReadSweepJournal(path_).error().kind, ErrorKind::kCorrupt);
  SetContent("{\"magic\":\"dynamiccl-measurements\",\"version\":1}\n");
  EXPECT_EQ(ReadSweepJournal(path_).error().kind, ErrorKind::kCorrupt);
}

}  // namespace
}  // namespace dynamiccl
