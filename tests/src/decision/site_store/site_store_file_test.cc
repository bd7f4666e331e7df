// SPDX-License-Identifier: Apache-2.0
#include "src/decision/site_store/site_store_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "src/base/sha256.h"
#include "src/base/unique_fd.h"
#include "tests/src/decision/site_store/sample_store.h"

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;
using testing::kNow;
using testing::RandomStore;

class SiteStoreFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "site_store_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = pattern + "/a.dcsite";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
  std::string path_;
};

// Puts the correct digest at the end of a changed file.
void Seal(std::vector<std::byte>& bytes) {
  const Sha256Digest digest = Sha256Of(std::span<const std::byte>(bytes).first(bytes.size() - 32));
  std::memcpy(bytes.data() + bytes.size() - 32, digest.data(), digest.size());
}

// Returns the error about a file of five entries and two findings in which one byte has another value.
std::string MessageWith(size_t offset, uint8_t value) {
  std::vector<std::byte> bytes = FormatSiteStore(RandomStore(2, 5));
  bytes[offset] = std::byte{value};
  Seal(bytes);
  const auto store = ParseSiteStore(bytes, "x.dcsite");
  return store ? "accepted" : store.error().message;
}

TEST(SiteStoreFormat, StoresSurviveWritingAndReading) {
  for (const int entries : {0, 1, 2, 200}) {
    const SiteStore store = RandomStore(1, entries);
    const std::vector<std::byte> bytes = FormatSiteStore(store);
    EXPECT_EQ(bytes.size(), 96 + 64 * (store.entries().size() + store.findings().size()));
    const auto read = ParseSiteStore(bytes, "a");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_TRUE(*read == store);
  }
}

// Files of the first version end after the entries. They have zeros in the place of the number of findings.
TEST(SiteStoreFormat, AFileOfTheFirstVersionIsReadWithoutFindings) {
  SiteStore store;
  std::mt19937_64 random(1);
  for (int i = 0; i < 5; ++i) store.Learn(testing::RandomKey(random), testing::RandomConfirmed(random));
  std::vector<std::byte> bytes = FormatSiteStore(store);
  bytes[8] = std::byte{1};
  Seal(bytes);
  const auto read = ParseSiteStore(bytes, "old");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(*read == store);
}

TEST(SiteStoreFormat, TruncatedAnywhereIsRefused) {
  const std::vector<std::byte> whole = FormatSiteStore(RandomStore(1, 30));
  for (size_t length = 0; length < whole.size(); ++length) {
    ASSERT_FALSE(ParseSiteStore(std::span(whole).first(length), "cut")) << length << " bytes";
  }
}

TEST(SiteStoreFormat, AnyFlippedBitIsRefused) {
  std::vector<std::byte> bytes = FormatSiteStore(RandomStore(1, 8));
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
    ASSERT_FALSE(ParseSiteStore(bytes, "damaged")) << "bit " << bit;
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
  }
}

TEST(SiteStoreFormat, LongerThanItSaysIsRefused) {
  std::vector<std::byte> bytes = FormatSiteStore(RandomStore(1, 8));
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(ParseSiteStore(bytes, "longer"));
  bytes.resize(2 << 20);
  EXPECT_FALSE(ParseSiteStore(bytes, "long"));
}

TEST(SiteStoreFormat, FaultsNameTheirByteAndCheck) {
  constexpr size_t kEntry = 64;
  EXPECT_THAT(MessageWith(0, 'X'), HasSubstr("x.dcsite: byte 0: not a site store"));
  EXPECT_THAT(MessageWith(8, 3), HasSubstr("byte 8: format version 3, this build reads 1 to 2"));
  EXPECT_THAT(MessageWith(8, 1), HasSubstr("byte 20: 5 entries and 0 findings do not fill the file"));
  EXPECT_THAT(MessageWith(12, 65), HasSubstr("byte 12: another size"));
  EXPECT_THAT(MessageWith(20, 99), HasSubstr("byte 20: 99 entries and 2 findings do not fill the file"));
  EXPECT_THAT(MessageWith(24, 1), HasSubstr("byte 20: 5 entries and 1 findings do not fill the file"));
  EXPECT_THAT(MessageWith(kEntry + 20, 0), HasSubstr("byte 64: a communicator of a shape"));
  EXPECT_THAT(MessageWith(kEntry + 28, 5), HasSubstr("byte 64: not a collective that is tuned"));
  EXPECT_THAT(MessageWith(kEntry + 30, 8), HasSubstr("byte 64: a role or regime"));
  EXPECT_THAT(MessageWith(kEntry + 31, 4), HasSubstr("byte 64: a role or regime"));
  EXPECT_THAT(MessageWith(kEntry + 32, 9), HasSubstr("byte 64: a config that NCCL does not have"));
  constexpr size_t kFinding = kEntry + 5 * 64;
  EXPECT_THAT(MessageWith(kFinding + 24, 0), HasSubstr("byte 384: a communicator of a shape"));
  EXPECT_THAT(MessageWith(kFinding + 28, 32), HasSubstr("byte 384: a collective that does not exist"));
  EXPECT_THAT(MessageWith(kFinding + 29, 9), HasSubstr("byte 384: a config that NCCL does not have"));
  EXPECT_THAT(MessageWith(kFinding + 30, 3), HasSubstr("byte 384: a config that NCCL does not have"));
  EXPECT_THAT(MessageWith(kFinding + 31, 3), HasSubstr("byte 384: a config that NCCL does not have"));
  EXPECT_THAT(MessageWith(kFinding + 47, 0xbf), HasSubstr("byte 384: a finding without steps or error"));
}

TEST(SiteStoreFormat, NumbersThatAreNotFiniteAreRefused) {
  SiteStore store;
  std::mt19937_64 random(1);
  store.Learn(testing::RandomFindingKey(random), testing::RandomFinding(random));
  for (const size_t field : {32, 36, 40, 44}) {
    std::vector<std::byte> bytes = FormatSiteStore(store);
    const float infinite = std::numeric_limits<float>::infinity();
    std::memcpy(bytes.data() + 64 + field, &infinite, sizeof(infinite));
    Seal(bytes);
    const auto read = ParseSiteStore(bytes, "x");
    ASSERT_FALSE(read) << "field " << field;
    EXPECT_THAT(read.error().message, HasSubstr("byte 64: a number that is not finite"));
  }
}

TEST_F(SiteStoreFile, AFileThatDoesNotExistIsAnEmptyStore) {
  const auto store = ReadSiteStore(path_);
  ASSERT_TRUE(store);
  EXPECT_TRUE(store->entries().empty());
}

TEST_F(SiteStoreFile, WhatRunsLearnIsMerged) {
  const SiteStore first = RandomStore(1, 20);
  const SiteStore second = RandomStore(2, 20);
  ASSERT_TRUE(AddToSiteStore(path_, first, kNow));
  ASSERT_TRUE(AddToSiteStore(path_, second, kNow));
  SiteStore both = first;
  both.Learn(second);
  EXPECT_GT(both.findings().size(), first.findings().size());
  EXPECT_TRUE(*ReadSiteStore(path_) == both);
}

// Eight jobs end at the same time, and nothing that they learnt is lost.
TEST_F(SiteStoreFile, JobsThatWriteAtOnceLoseNothing) {
  std::vector<std::thread> jobs;
  for (uint32_t job = 0; job < 8; ++job) {
    jobs.emplace_back([&, job] {
      SiteStore learnt;
      SiteKey key;
      key.place.nccl_version = job;
      learnt.Learn(key, {{Algorithm::kRing, Protocol::kLL, 1}, 0, 1, 1, kNow});
      // A writer gives up after a second without the lock, which may pass on a busy machine.
      while (!AddToSiteStore(path_, learnt, kNow)) std::this_thread::yield();
    });
  }
  for (std::thread& job : jobs) job.join();
  EXPECT_EQ(ReadSiteStore(path_)->entries().size(), 8u);
}

TEST_F(SiteStoreFile, ADamagedFileIsKeptAsideAndBegunAnew) {
  std::ofstream(path_) << "no site store";
  EXPECT_FALSE(ReadSiteStore(path_));
  const SiteStore learnt = RandomStore(3, 4);
  ASSERT_TRUE(AddToSiteStore(path_, learnt, kNow));
  EXPECT_EQ(ReadSiteStore(path_)->entries(), learnt.entries());
  EXPECT_TRUE(std::filesystem::exists(path_ + ".damaged"));
}

TEST_F(SiteStoreFile, AnotherVersionIsLeftAlone) {
  std::vector<std::byte> bytes = FormatSiteStore(RandomStore(1, 3));
  bytes[8] = std::byte{3};
  std::ofstream(path_, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const auto status = AddToSiteStore(path_, RandomStore(3, 4), kNow);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(std::filesystem::file_size(path_), bytes.size());
}

TEST_F(SiteStoreFile, AHeldLockIsGivenUpOn) {
  const UniqueFd held(::open((path_ + ".lock").c_str(), O_RDWR | O_CREAT, 0644));
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  const auto status = AddToSiteStore(path_, RandomStore(3, 4), kNow);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::kTimeout);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(SiteStoreFile, AFolderThatDoesNotExistIsSaid) {
  const auto status = AddToSiteStore((folder_ / "none" / "a.dcsite").string(), RandomStore(3, 4), kNow);
  ASSERT_FALSE(status);
  EXPECT_FALSE(status.error().hint.empty());
}

}  // namespace
}  // namespace dynamiccl
