// SPDX-License-Identifier: Apache-2.0
// Tests which process owns a file and what exists under its name. Ranks that get the same name must not lose
// each other's data, and must not end each other by SIGBUS.
#include "src/base/own_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/base/shared_memory.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

class OwnFileTest : public ::testing::Test {
 protected:
  OwnFileTest() {
    std::string folder = fs::temp_directory_path() / "dynamiccl-own-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~OwnFileTest() override { fs::remove_all(folder_); }

  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.insert(entry.path().filename());
    return names;
  }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

TEST_F(OwnFileTest, GoesThroughNoLink) {
  fs::create_symlink("/dev/null", folder() + "/link");
  EXPECT_FALSE(CreateOwnFile(folder() + "/link", O_RDWR));
  EXPECT_TRUE(CreateOwnFile(folder() + "/file", O_RDWR));
}

TEST_F(OwnFileTest, OneMissingFolderIsMadeAndNoTreeOfThem) {
  MakeFolderOf(folder() + "/traces/0.ctrace");
  MakeFolderOf(folder() + "/traces/1.ctrace");
  EXPECT_TRUE(CreateOwnFile(folder() + "/traces/0.ctrace", O_RDWR));
  MakeFolderOf(folder() + "/a/b/0.ctrace");
  MakeFolderOf("0.ctrace");
  EXPECT_EQ(Names(), std::set<std::string>{"traces"});
}

TEST_F(OwnFileTest, ReplacesWhatNobodyHolds) {
  const std::string path = folder() + "/a.ctrace";
  std::ofstream(path) << "of an earlier run";
  const auto file = CreateOwnFile(path, O_RDWR);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->path, path);
  EXPECT_EQ(fs::file_size(path), 0u);
  EXPECT_EQ(Names(), std::set<std::string>{"a.ctrace"});
}

// A reader holds the lock until a timer's signal arrives. This process claims the file meanwhile.
TEST_F(OwnFileTest, WaitsForAReaderThatLooksWhetherTheFileIsClaimed) {
  static int reader = -1;
  const std::string path = folder() + "/a.ctrace";
  std::ofstream(path) << "of an earlier run";
  reader = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(reader, LOCK_SH | LOCK_NB), 0);
  const auto previous = std::signal(SIGALRM, [](int) { ::close(reader); });
  const itimerval in_a_millisecond = {.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 1000}};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &in_a_millisecond, nullptr), 0);
  const auto file = ClaimOwnFile(path, O_RDWR);
  std::signal(SIGALRM, previous);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->has_value());
}

TEST_F(OwnFileTest, WhoStillHasAReplacedFileMappedKeepsIt) {
  const std::string path = folder() + "/a";
  std::ofstream(path) << std::string(8192, 'x');
  const UniqueFd reader(::open(path.c_str(), O_RDONLY));
  const auto* mapped =
      static_cast<const char*>(::mmap(nullptr, 8192, PROT_READ, MAP_SHARED, reader.get(), 0));
  ASSERT_NE(mapped, MAP_FAILED);
  ASSERT_TRUE(CreateOwnFile(path, O_RDWR));
  EXPECT_EQ(mapped[8191], 'x');
  ::munmap(const_cast<char*>(mapped), 8192);
}

TEST_F(OwnFileTest, WhatAnotherHoldsStaysAndThisOneStandsBesideIt) {
  const std::string path = folder() + "/a.ctrace";
  auto first = SharedMemory::OfFile(*CreateOwnFile(path, O_RDWR), 4096);
  ASSERT_TRUE(first);
  first->data()[4095] = std::byte{7};
  const auto second = CreateOwnFile(path, O_RDWR);
  ASSERT_TRUE(second);
  const std::string own = "a." + std::to_string(::getpid()) + ".ctrace";
  EXPECT_EQ(second->path, folder() + "/" + own);
  EXPECT_EQ(Names(), (std::set<std::string>{"a.ctrace", own}));
  EXPECT_EQ(first->data()[4095], std::byte{7});
  EXPECT_FALSE(CreateOwnFile(path, O_RDWR)) << "a process has two names, not three";
}

TEST_F(OwnFileTest, IsNoStandardStream) {
  const UniqueFd error(::dup(STDERR_FILENO));
  ::close(STDERR_FILENO);
  const auto file = CreateOwnFile(folder() + "/a", O_RDWR);
  ::dup2(error.get(), STDERR_FILENO);
  ASSERT_TRUE(file);
  EXPECT_GT(file->fd.get(), STDERR_FILENO);
}

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  void Close(int end) { ::close(ends[end]); }
  int ends[2] = {-1, -1};
};

// Begins when `start` is closed. Writes its number as the file's only content, reports that, and holds the
// file until `end` is closed.
[[noreturn]] void BeOneOfMany(int number, const std::string& path, Pipe& start, Pipe& done, Pipe& end) {
  ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);  // Each process prints where it writes.
  start.Close(1);
  end.Close(1);
  char byte = 1;
  [[maybe_unused]] ssize_t ignored = ::read(start.ends[0], &byte, 1);
  const auto file = CreateOwnFile(path, O_WRONLY);
  const bool written = file && ::write(file->fd.get(), &number, sizeof(number)) == sizeof(number);
  ignored = ::write(done.ends[1], &byte, 1);
  ignored = ::read(end.ends[0], &byte, 1);
  ::_exit(written ? 0 : 1);
}

TEST_F(OwnFileTest, ProcessesThatComeAtOnceLoseNothing) {
  constexpr int kProcesses = 16;
  for (int round = 0; round < 20; ++round) {
    const std::string path = folder() + "/" + std::to_string(round) + ".log";
    std::ofstream(path) << "of an earlier run";
    Pipe start, done, end;
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i) {
      children.push_back(::fork());
      if (children.back() == 0) BeOneOfMany(i, path, start, done, end);
    }
    start.Close(1);
    char byte = 0;
    for (int i = 0; i < kProcesses; ++i) ASSERT_EQ(::read(done.ends[0], &byte, 1), 1);
    end.Close(1);
    for (const pid_t child : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
    for (Pipe* pipe : {&start, &done, &end}) pipe->Close(0);
    done.Close(1);
  }
  std::map<std::string, std::set<int>> numbers;
  for (const auto& entry : fs::directory_iterator(folder())) {
    int number = -1;
    std::ifstream(entry.path(), std::ios::binary).read(reinterpret_cast<char*>(&number), sizeof(number));
    const std::string name = entry.path().filename();
    numbers[name.substr(0, name.find('.'))].insert(number);
  }
  EXPECT_EQ(numbers.size(), 20u);
  for (const auto& [round, found] : numbers) EXPECT_EQ(found.size(), size_t{kProcesses}) << round;
}

}  // namespace
}  // namespace dynamiccl
