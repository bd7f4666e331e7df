// SPDX-License-Identifier: Apache-2.0
// Tests what another user can do to the files that a job writes and reads in a folder where everybody may
// write.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "plugin/runtime/decision_log.h"
#include "src/base/own_file.h"
#include "src/base/whole_file.h"
#include "tests/security/in_a_child.h"

namespace dynamiccl {
namespace {

using testing::AsAnotherUser;
using testing::kAnotherUser;

// The folder is not sticky. In a sticky folder the system itself prevents some attacks (such as
// fs.protected_symlinks).
class AnotherUsersFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::IsRoot()) GTEST_SKIP() << "needs root, to become another user";
    std::string folder = std::filesystem::temp_directory_path() / "dynamiccl-everybody-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
    std::ofstream(Path("precious")) << "precious";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string PreciousText() const { return ReadSmallFile(Path("precious"), 100).value(); }
  // Puts a link to the precious file at the path where the job is expected to create its next file.
  void PutLink(const std::string& name) const {
    ASSERT_EQ(
        AsAnotherUser([&] { return ::symlink(Path("precious").c_str(), Path(name).c_str()) == 0 ? 0 : 1; }),
        0);
  }
  // Creates a file that everybody may write, and keeps it open.
  void PutFile(const std::string& name) const {
    ASSERT_EQ(AsAnotherUser([&] {
                ::umask(0);
                return ::open(Path(name).c_str(), O_CREAT | O_RDWR, 0666) >= 0 ? 0 : 1;
              }),
              0);
  }
  mode_t ModeOf(const std::string& name) const {
    struct stat info = {};
    EXPECT_EQ(::stat(Path(name).c_str(), &info), 0);
    return info.st_mode & 07777;
  }

  std::string folder_;
};

TEST_F(AnotherUsersFiles, AReplacedFileGoesThroughNoLink) {
  PutLink("metrics." + std::to_string(::getpid()));
  EXPECT_TRUE(ReplaceFile(Path("metrics"), "new"));
  EXPECT_EQ(PreciousText(), "precious");
  EXPECT_EQ(ReadSmallFile(Path("metrics"), 100).value(), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(Path("metrics")));
}

TEST_F(AnotherUsersFiles, AWholeFileGoesThroughNoLink) {
  PutLink(fmt::format("policy.{}.tmp", ::getpid()));
  (void)WriteWholeFile(Path("policy"), std::as_bytes(std::span("new", 3)));
  EXPECT_EQ(PreciousText(), "precious");
}

TEST_F(AnotherUsersFiles, ATraceIsReadByItsUserAlone) {
  EXPECT_TRUE(CreateOwnFile(Path("own.ctrace"), O_RDWR).has_value());
  EXPECT_EQ(ModeOf("own.ctrace"), 0600u);
  EXPECT_TRUE(CreateOwnFile(Path("own.ctrace"), O_RDWR).has_value()) << "once more";
  EXPECT_EQ(AsAnotherUser([&] { return ::open(Path("own.ctrace").c_str(), O_RDONLY) < 0 ? 0 : 1; }), 0);
  PutLink("link.ctrace");
  EXPECT_FALSE(CreateOwnFile(Path("link.ctrace"), O_RDWR).has_value());
  EXPECT_EQ(PreciousText(), "precious");
  PutFile("theirs.ctrace");
  const auto theirs = CreateOwnFile(Path("theirs.ctrace"), O_RDWR);
  ASSERT_FALSE(theirs.has_value());
  EXPECT_NE(theirs.error().message.find("belongs to user 65534"), std::string::npos)
      << theirs.error().message;
  ASSERT_EQ(::mkfifo(Path("pipe.ctrace").c_str(), 0600), 0);
  EXPECT_FALSE(CreateOwnFile(Path("pipe.ctrace"), O_RDWR).has_value());
}

TEST_F(AnotherUsersFiles, ADecisionLogIsReadByItsUserAlone) {
  EXPECT_NE(DecisionLog::At(Path("own.log")), nullptr);
  EXPECT_EQ(ModeOf("own.log"), 0600u);
  PutLink("link.log");
  EXPECT_EQ(DecisionLog::At(Path("link.log")), nullptr);
  EXPECT_EQ(PreciousText(), "precious");
  PutFile("theirs.log");
  EXPECT_EQ(DecisionLog::At(Path("theirs.log")), nullptr);
  ASSERT_EQ(::mkfifo(Path("pipe.log").c_str(), 0600), 0);
  EXPECT_EQ(DecisionLog::At(Path("pipe.log")), nullptr) << "nor does it wait for a reader";
}

TEST_F(AnotherUsersFiles, APolicyThatOthersMayWriteIsKnownForIt) {
  const auto others_may_write = [&](mode_t mode, uid_t owner) {
    EXPECT_EQ(::chown(Path("precious").c_str(), owner, 0), 0);
    EXPECT_EQ(::chmod(Path("precious").c_str(), mode), 0);
    const auto file = ReadWholeFile(Path("precious"), 100);
    return file ? static_cast<int>(file->others_may_write) : 2;
  };
  EXPECT_EQ(others_may_write(0644, 0), 0);
  EXPECT_EQ(others_may_write(0664, 0), 1) << "its group";
  EXPECT_EQ(others_may_write(0646, 0), 1) << "everybody";
  EXPECT_EQ(others_may_write(0644, kAnotherUser), 1) << "its owner";
  EXPECT_EQ(others_may_write(0644, 1234), 1);
  // Root, who may write everything, and the user do not count as others.
  EXPECT_EQ(::chown(Path("precious").c_str(), 0, 0), 0);
  EXPECT_EQ(::chmod(Path("precious").c_str(), 0644), 0);
  EXPECT_EQ(AsAnotherUser([&] { return ReadWholeFile(Path("precious"), 100)->others_may_write ? 1 : 0; }), 0);
  EXPECT_EQ(::chown(Path("precious").c_str(), kAnotherUser, 0), 0);
  EXPECT_EQ(AsAnotherUser([&] { return ReadWholeFile(Path("precious"), 100)->others_may_write ? 1 : 0; }), 0);
}

}  // namespace
}  // namespace dynamiccl
