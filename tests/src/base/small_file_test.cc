// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "src/base/file_kind.h"
#include "src/base/whole_file.h"

namespace dynamiccl {
namespace {

class SmallFileTest : public ::testing::Test {
 protected:
  SmallFileTest() {
    std::string folder = std::filesystem::temp_directory_path() / "dynamiccl-small-file-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~SmallFileTest() override { std::filesystem::remove_all(folder_); }
  size_t Entries() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::string folder_;
};

TEST_F(SmallFileTest, IsReplacedWholeOrNotAtAll) {
  const std::string path = folder_ + "/file";
  EXPECT_TRUE(ReplaceFile(path, std::string(10000, 'o')));
  EXPECT_TRUE(ReplaceFile(path, "new\n"));
  EXPECT_EQ(ReadSmallFile(path, 100).value(), "new\n");
  EXPECT_FALSE(ReplaceFile(folder_ + "/none/file", "x"));
  std::filesystem::create_directory(folder_ + "/taken");
  EXPECT_FALSE(ReplaceFile(folder_ + "/taken", "x"));
  EXPECT_EQ(Entries(), 2u) << "something is left beside them";
}

TEST_F(SmallFileTest, ReadingSaysWhatIsWrong) {
  const std::string path = folder_ + "/file";
  for (const size_t bytes : {0, 1, 4095, 4096, 4097, 9000}) {
    ASSERT_TRUE(ReplaceFile(path, std::string(bytes, 'x')));
    EXPECT_EQ(ReadSmallFile(path, 9000).value().size(), bytes);
    if (bytes == 0) continue;
    const auto too_long = ReadSmallFile(path, bytes - 1);
    ASSERT_FALSE(too_long);
    EXPECT_EQ(too_long.error().kind, ErrorKind::kInvalidArgument);
    EXPECT_EQ(too_long.error().message, path + ": longer than " + std::to_string(bytes - 1) + " bytes");
  }
  const auto missing = ReadSmallFile(folder_ + "/none", 10);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kNotFound);
}

// Reading a pipe would block for ever and reading /dev/zero would never end. Replacing one by a new file
// would destroy it.
TEST_F(SmallFileTest, WhatIsNoFileIsNeitherReadNorReplaced) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/null", folder_ + "/link");
  std::filesystem::create_symlink(pipe, folder_ + "/link_to_pipe");
  for (const std::string& path :
       {pipe, folder_, folder_ + "/link", folder_ + "/link_to_pipe", std::string("/dev/zero")}) {
    const auto read = ReadSmallFile(path, 100);
    ASSERT_FALSE(read) << path;
    EXPECT_NE(read.error().message.find("not a regular file"), std::string::npos) << read.error().message;
    EXPECT_FALSE(ReplaceFile(path, "x")) << path;
    EXPECT_FALSE(WriteWholeFile(path, {})) << path;
  }
  EXPECT_FALSE(CheckReplaceable("/dev/stdin")) << "a link of the system";
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ + "/link"));
  EXPECT_EQ(Entries(), 3u) << "something is left beside them";
}

TEST_F(SmallFileTest, AnOutputIsCheckedBeforeTheWork) {
  EXPECT_TRUE(CheckFolderOf(""));
  EXPECT_TRUE(CheckFolderOf(folder_ + "/new"));
  EXPECT_TRUE(CheckFolderOf("/dev/null")) << "nothing is put beside it";
  EXPECT_FALSE(CheckFolderOf(folder_ + "/none/new"));
  const Status folder = CheckFolderOf(folder_);
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().message.find("is a folder"), std::string::npos);
}

TEST_F(SmallFileTest, OutputsAreCheckedWithoutMakingThem) {
  EXPECT_TRUE(CheckOutputs({"", folder_ + "/new"}));
  EXPECT_FALSE(CheckOutputs({folder_ + "/new", folder_ + "/none/new"}));
  EXPECT_FALSE(CheckOutputs({"/dev/null"})) << "a file is renamed into its place";
  EXPECT_TRUE(CheckOutputFolder(""));
  EXPECT_TRUE(CheckOutputFolder(folder_));
  EXPECT_TRUE(CheckOutputFolder(folder_ + "/some/new"));
  EXPECT_TRUE(WriteWholeFile(folder_ + "/file", {}));
  EXPECT_FALSE(CheckOutputFolder(folder_ + "/file/new"));
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(SmallFileTest, APipeIsWrittenToWhereSomebodyReadsIt) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(HoldReader(pipe));
  const UniqueFd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
  EXPECT_TRUE(HoldReader(pipe).value().valid());
  EXPECT_FALSE(HoldReader(folder_ + "/none").value().valid());
}

}  // namespace
}  // namespace dynamiccl
