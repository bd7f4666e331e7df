// SPDX-License-Identifier: Apache-2.0
#include "src/base/small_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

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

}  // namespace
}  // namespace dynamiccl
