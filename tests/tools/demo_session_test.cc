// SPDX-License-Identifier: Apache-2.0
// Tests a session whose installation consists of empty files. It starts shell scripts of the test.
#include "tools/demo/demo_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DemoSessionTest : public ::testing::Test {
 protected:
  DemoSessionTest()
      : folder_(fs::path(::testing::TempDir()) / ("demo_session_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    for (const char* part : {"lib/libdynamiccl.so", "lib/hostccl/libnccl.so.2", "bin/dynamiccl",
                             "bin/dynamiccl-agents", "bin/dynamiccl-zero", "text.txt"}) {
      fs::create_directories((folder_ / part).parent_path());
      std::ofstream(folder_ / part) << "x";
    }
  }
  ~DemoSessionTest() override {
    ::umount2((folder_ / "demo").c_str(), MNT_DETACH);  // The test of a full disk mounts this folder.
    fs::remove_all(folder_);
  }

  Result<DemoSession> Open() const {
    return DemoSession::Open({.quick = true,
                              .text = (folder_ / "text.txt").string(),
                              .output_dir = (folder_ / "demo").string(),
                              .home = folder_.string()});
  }
  // Returns a run that appends its label to the file "order" on each start and then runs `script`.
  DemoRun RunOf(const std::string& label, const std::string& script = "true") const {
    const std::string order = (folder_ / "order").string();
    return {.label = label,
            .plan = {.command = {"/bin/sh", "-c", "echo " + label + " >> " + order + "; " + script}},
            .outputs = {}};
  }
  std::vector<std::string> Order() const {
    std::ifstream file(folder_ / "order");
    return {std::istream_iterator<std::string>(file), {}};
  }
  // Returns a script that fails in its first `times` starts.
  std::string FailFirst(int times) const {
    const std::string count = (folder_ / "count").string();
    return "echo >> " + count + "; test $(wc -l < " + count + ") -gt " + std::to_string(times);
  }

  fs::path folder_;
};

TEST_F(DemoSessionTest, ARunThatFailsIsStartedOnceMoreAndTheResultSaysSo) {
  auto session = Open();
  ASSERT_TRUE(session.has_value()) << session.error().message;
  session->BeginStep("record", "a step", 1);
  EXPECT_TRUE(session->Run(RunOf("a", FailFirst(1))).has_value());
  EXPECT_THAT(Order(), ElementsAre("a", "a"));
  EXPECT_THAT(session->result().repeated, ElementsAre("a"));
  EXPECT_TRUE(session->Finished("a"));
}

TEST_F(DemoSessionTest, ARunThatFailsTwiceIsAnErrorThatNamesItAndTheDemoGoesOnWithoutIt) {
  DemoSession session = Open().value();
  session.BeginStep("record", "a step", 1);
  const Status done = session.Run(RunOf("a", FailFirst(2)));
  ASSERT_FALSE(done.has_value());
  EXPECT_THAT(done.error().message, HasSubstr("run 'a'"));
  EXPECT_THAT(done.error().hint, HasSubstr("logs/record.log"));
  EXPECT_TRUE(session.GoOnWithout("a", done.error()).has_value());
  ASSERT_EQ(session.result().missing.size(), 1U);
  EXPECT_EQ(session.result().missing.front().name, "a");
  EXPECT_FALSE(session.Finished("a"));
  EXPECT_TRUE(session.Run(RunOf("b")).has_value());
}

TEST_F(DemoSessionTest, GoesOnWhereAnEarlierOneWasKilled) {
  {
    DemoSession session = Open().value();
    session.BeginStep("record", "a step", 1);
    ASSERT_TRUE(session.Run(RunOf("a")).has_value());
    ASSERT_TRUE(session.Run(RunOf("b")).has_value());
  }
  DemoSession session = Open().value();
  session.BeginStep("record", "a step", 1);
  for (const char* label : {"a", "b", "c"}) EXPECT_TRUE(session.Run(RunOf(label)).has_value());
  EXPECT_THAT(Order(), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(session.Finished("a")) << "in the earlier process";
  EXPECT_THAT(session.result().repeated, IsEmpty());
}

TEST_F(DemoSessionTest, AnotherBuildBeginsAnew) {
  {
    DemoSession session = Open().value();
    session.BeginStep("record", "a step", 1);
    ASSERT_TRUE(session.Run(RunOf("a")).has_value());
  }
  std::ofstream(folder_ / "lib/libdynamiccl.so") << "built again";
  DemoSession session = Open().value();
  session.BeginStep("record", "a step", 1);
  ASSERT_TRUE(session.Run(RunOf("a")).has_value());
  EXPECT_THAT(Order(), ElementsAre("a", "a"));
}

TEST_F(DemoSessionTest, ACompleteDemoIsNotGoneOnWith) {
  {
    DemoSession session = Open().value();
    session.BeginStep("record", "a step", 1);
    ASSERT_TRUE(session.Run(RunOf("a")).has_value());
    session.Complete();
  }
  DemoSession session = Open().value();
  session.BeginStep("record", "a step", 1);
  ASSERT_TRUE(session.Run(RunOf("a")).has_value());
  EXPECT_THAT(Order(), ElementsAre("a", "a"));
}

TEST_F(DemoSessionTest, ASecondDemoInTheSameFolderIsRefused) {
  const DemoSession first = Open().value();
  const auto second = Open();
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message, HasSubstr("another tune, pilot or demo is running in"));
  EXPECT_THAT(second.error().hint, HasSubstr("-o"));
}

TEST_F(DemoSessionTest, ADiskThatFillsInTheMiddleEndsTheDemoWhichGoesOnOnceThereIsRoom) {
  const fs::path disk = folder_ / "demo", filler = disk / "filler";
  fs::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=520m") != 0)
    GTEST_SKIP() << "no file system can be mounted here";
  {
    DemoSession session = Open().value();
    session.BeginStep("record", "a step", 1);
    EXPECT_TRUE(session.Run(RunOf("a")).has_value());
    const Status full = session.Run(RunOf("b", "head -c 600M /dev/zero > " + filler.string()));
    ASSERT_FALSE(full.has_value());
    EXPECT_THAT(full.error().message, HasSubstr("has 0 MB left"));
    EXPECT_THAT(full.error().hint, HasSubstr("make room there and start it again"));
    EXPECT_THAT(Order(), ElementsAre("a", "b")) << "started once more in vain";
    EXPECT_FALSE(session.GoOnWithout("b", full.error()).has_value());
  }
  EXPECT_THAT(Open().error().message, HasSubstr("has 0 MB left"));
  fs::remove(filler);
  {
    DemoSession session = Open().value();
    session.BeginStep("record", "a step", 1);
    for (const char* label : {"a", "b"}) EXPECT_TRUE(session.Run(RunOf(label)).has_value());
  }
  EXPECT_THAT(Order(), ElementsAre("a", "b", "b"));
}

TEST_F(DemoSessionTest, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(folder_ / "demo") << "a file";
  const auto session = Open();
  ASSERT_FALSE(session.has_value());
  EXPECT_THAT(session.error().message, HasSubstr("demo"));
  EXPECT_THAT(session.error().hint, HasSubstr("-o"));
}

}  // namespace
}  // namespace dynamiccl
